"""Client of the secret store for the agent in a pod. It uses only the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pincompute.agents.store_connection import StoreConnection, StoreUnavailable

WAIT_S = 15.0
"""How long the store holds a request for versions that have not changed. Shorter than the connection's time limit."""


class Refusal(NamedTuple):
    """Why the pod does not get a secret."""

    reason: str
    what: str
    next: str


class Versions(NamedTuple):
    """The store's answer for all secrets of a pod."""

    digest: str
    secrets: dict[str, int | Refusal]
    """The version of each secret, or why there is none."""


class SecretRefused(Exception):  # noqa: N818  (named by what happened)
    """The store does not give a secret, or anything, to this pod."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.refusal = refusal


class SecretClient:
    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    def fetch_versions(self, names: Sequence[str], since: str) -> Versions:
        """The present versions; with the digest of the last answer, as soon as there is another one, or later."""
        query = [("name", each) for each in names]
        if since:
            query += [("since", since), ("wait", str(WAIT_S))]
        answer = json.loads(self._get("/v1/versions", query).body)
        secrets = {name: each if isinstance(each, int) else _refusal(each) for name, each in answer["secrets"].items()}
        return Versions(answer["digest"], secrets)

    def fetch_value(self, name: str) -> tuple[int, bytes]:
        """Version and value."""
        answer = self._get("/v1/value", [("name", name)])
        return int(answer.headers["Secret-Version"]), answer.body

    def close(self) -> None:
        self._connection.close()

    def _get(self, path: str, query: list[tuple[str, str]]) -> _Answer:
        answer = _Answer(*self._connection.send("GET", f"{path}?{urlencode(query)}"))
        if answer.status == 200:
            return answer
        raise _failure(answer)


class _Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def _failure(answer: _Answer) -> Exception:
    try:
        refusal = _refusal(json.loads(answer.body)["errors"][0])
    except (ValueError, LookupError, TypeError):
        return StoreUnavailable(f"the store returned {answer.status}")
    return StoreUnavailable(refusal.what) if answer.status >= 500 else SecretRefused(refusal)


def _refusal(error: dict[str, Any]) -> Refusal:
    return Refusal(error["reason"], error["detail"], error.get("next", ""))
