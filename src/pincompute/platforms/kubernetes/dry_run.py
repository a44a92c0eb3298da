"""Dry runs: asks the API server whether it would accept objects, with all its admission checks, and stores nothing.

Each object is sent as a create with `dryRun`, also if one of its name exists. The server reports "already exists" only
after every other check has passed, so this answer means that the object is acceptable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.names import OPERATOR
from pincompute.base.bounded_map import BoundedMap
from pincompute.base.problem import Problem, Where
from pincompute.controller.resources import ALL_NATIVES, CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from pincompute.objects.content import Object, content_hash, object_label

MAX_CACHED_ANSWERS = 1024
ANSWER_TTL = timedelta(seconds=30)
"""Cached answers expire, because the policies of a cluster may change and are not watched."""
MAX_CONCURRENT_REQUESTS = 8

_CREATE_FORBIDDEN = "cannot create resource"
_QUOTA_EXCEEDED = "exceeded quota"
_QUOTA_UNKNOWN = "status unknown for quota"
"""Answered for a moment after a quota was created."""


class _CachedAnswer(NamedTuple):
    at: datetime
    problem: Problem | None


class DryRunner:
    """Dry runs with the permissions of one client; answers are cached for a short time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: BoundedMap[str, _CachedAnswer] = BoundedMap(MAX_CACHED_ANSWERS)
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def check(self, natives: Sequence[Object], existing: Collection[str]) -> list[Problem]:
        """Problems of all objects that would be refused; `existing` are the labels of those that exist already."""
        answers = await asyncio.gather(
            *(self._check_cached(each, exists=object_label(each) in existing) for each in natives)
        )
        return [each for each in answers if each]

    async def _check_cached(self, native: Object, *, exists: bool) -> Problem | None:
        key, now = content_hash([native, exists]), self._client.clock.now()
        known = self._answers.get(key)
        if known and now - known.at < ANSWER_TTL:
            return known.problem
        async with self._slots:
            problem = await self._check_one(native, exists=exists)
        self._answers.put(key, _CachedAnswer(now, problem))
        return problem

    async def _check_one(self, native: Object, *, exists: bool) -> Problem | None:
        resource = {**CUSTOM_RESOURCES, **ALL_NATIVES}[native["kind"]]
        # The owner may not exist yet, and the API server would reject the reference.
        metadata = {name: each for name, each in native["metadata"].items() if name != "ownerReferences"}
        wanted = {**native, "metadata": metadata}
        try:
            await self._client.create(resource, wanted, manager=OPERATOR, dry_run=True)
        except (AlreadyExists, NotFound):
            # A missing namespace or kind is reported by other checks.
            return None
        except ApiError as error:
            if not 400 <= error.status < 500 or error.status in (401, 408, 429):
                raise
            return None if _is_irrelevant(error, exists=exists) else _problem_of(error, native)
        return None


def _is_irrelevant(error: ApiError, *, exists: bool) -> bool:
    """Whether an error does not concern the object.

    The caller of a plan need not have the right to create natives, and an existing object is counted in the quota
    already.
    """
    texts = (_CREATE_FORBIDDEN, _QUOTA_UNKNOWN, *((_QUOTA_EXCEEDED,) if exists else ()))
    return isinstance(error, Forbidden) and any(each in error.message for each in texts)


def _problem_of(error: ApiError, native: Object) -> Problem:
    problem = error.problem()
    return problem._replace(where=Where(object=f"{object_label(native)} of {native['metadata'].get('namespace', '')}"))
