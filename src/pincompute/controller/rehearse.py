"""Rehearse: the API server is asked what it would say of natives, with all that a cluster has to say; nothing is kept.

It is asked whether each could be made. That one of its name is there is said last of all, and so is a yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.names import OPERATOR
from pincompute.base.problem import Problem, Where
from pincompute.base.recent import Recent
from pincompute.controller.resources import BECOME, NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from pincompute.objects.content import Object, digest, identity

KEPT = 1024
FRESH = timedelta(seconds=30)
"""For how long what was said counts: a cluster's own policies may change, and they are not watched."""
AT_ONCE = 8

_RIGHTS = "cannot create resource"
_QUOTA = "exceeded quota"
_UNCOUNTED = "status unknown for quota"
"""For a moment, of a quota that was made just now."""


class _Said(NamedTuple):
    at: datetime
    problem: Problem | None


class Rehearsal:
    """With one client's rights, and what was said of late."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._said: Recent[str, _Said] = Recent(KEPT)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def problems(self, natives: Sequence[Object], there: Collection[str]) -> list[Problem]:
        """All that a cluster would refuse; of some there is one already, by their identity."""
        said = await asyncio.gather(*(self._ask(each, there=identity(each) in there) for each in natives))
        return [each for each in said if each]

    async def _ask(self, native: Object, *, there: bool) -> Problem | None:
        key, now = digest([native, there]), self._client.clock.now()
        known = self._said.get(key)
        if known and now - known.at < FRESH:
            return known.problem
        async with self._turns:
            problem = await self._rehearse(native, there=there)
        self._said.note(key, _Said(now, problem))
        return problem

    async def _rehearse(self, native: Object, *, there: bool) -> Problem | None:
        resource = {**NOUNS, **BECOME}[native["kind"]]
        # Whose it is is for the operator alone to say, and may not be there yet.
        metadata = {name: each for name, each in native["metadata"].items() if name != "ownerReferences"}
        wanted = {**native, "metadata": metadata}
        try:
            await self._client.create(resource, wanted, manager=OPERATOR, dry_run=True)
        except (AlreadyExists, NotFound):
            # Where it would lie, or its kind, is not there: that is told otherwise.
            return None
        except ApiError as error:
            if not 400 <= error.status < 500 or error.status in (401, 408, 429):
                raise
            return None if _says_nothing(error, there=there) else _told(error, native)
        return None


def _says_nothing(error: ApiError, *, there: bool) -> bool:
    """Whoever plans need not have a right to natives; and what is there already is counted already."""
    words = (_RIGHTS, _UNCOUNTED, *((_QUOTA,) if there else ()))
    return isinstance(error, Forbidden) and any(each in error.message for each in words)


def _told(error: ApiError, native: Object) -> Problem:
    problem = error.problem()
    return problem._replace(where=Where(object=f"{identity(native)} of {native['metadata'].get('namespace', '')}"))
