"""Client of the desk's endpoints for secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from pincompute.api.secret import (
    GrantChange,
    NewSecret,
    NewSecretVersion,
    SecretDetail,
    SecretLogPage,
    SecretLogQuery,
    SecretSummary,
    SecretValue,
    VersionChange,
    VersionState,
)
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SECRET_INVALID, VERSIONS_DIFFER

T = TypeVar("T")
Send = Callable[[str, str, bytes], Awaitable[bytes]]
"""Sends method, path and body to the desk; returns the body of the response, or raises its refusal."""


class SecretClient:
    """Secrets of one project."""

    def __init__(self, send: Send, project: str) -> None:
        self._send = send
        self._path = f"/v1/projects/{quote(project, safe='')}/secrets"

    async def list_all(self) -> list[SecretSummary]:
        return await self._request_struct("GET", self._path, list[SecretSummary])

    async def describe(self, name: str) -> SecretDetail:
        return await self._request_struct("GET", self._of(name), SecretDetail)

    async def create(self, name: str, value: bytes) -> SecretDetail:
        return await self._request_struct("PUT", self._of(name), SecretDetail, NewSecret(value=value))

    async def add_version(self, name: str, value: bytes, *, promote: bool) -> SecretDetail:
        body = NewSecretVersion(value=value, promote=promote)
        return await self._request_struct("POST", self._of(name, "versions"), SecretDetail, body)

    async def set_state(self, name: str, version: int, state: VersionState) -> SecretDetail:
        path = self._of(name, "versions", str(version))
        return await self._request_struct("PATCH", path, SecretDetail, VersionChange(state=state))

    async def grant(self, name: str, grantee: str) -> SecretDetail:
        return await self._request_struct("POST", self._of(name, "grants"), SecretDetail, _grant(grantee))

    async def revoke(self, name: str, grantee: str) -> SecretDetail:
        return await self._request_struct("POST", self._of(name, "revocations"), SecretDetail, _grant(grantee))

    async def reveal(self, name: str, version: int) -> SecretValue:
        """The value of a version; of the primary one for 0."""
        return await self._request_struct("POST", f"{self._of(name, 'reveals')}?version={version}", SecretValue)

    async def log_page(self, name: str, query: SecretLogQuery) -> SecretLogPage:
        path = f"{self._of(name, 'log')}?{urlencode({'limit': query.limit, 'before': query.before})}"
        return await self._request_struct("GET", path, SecretLogPage)

    async def delete(self, name: str, *, force: bool) -> None:
        await self._send("DELETE", f"{self._of(name)}{'?force=true' if force else ''}", b"")

    def _of(self, *steps: str) -> str:
        """Quote names, which come as the user typed them."""
        return "/".join([self._path, *(quote(each, safe="") for each in steps)])

    async def _request_struct(self, method: str, path: str, type_: type[T], body: msgspec.Struct | None = None) -> T:
        answer = await self._send(method, path, msgspec.json.encode(body) if body else b"")
        try:
            return msgspec.json.decode(answer, type=type_)
        except msgspec.ValidationError:
            raise Refused(
                Problem(VERSIONS_DIFFER, "the desk has another version than this `pin`", next="pin up")
            ) from None


def _grant(grantee: str) -> GrantChange:
    try:
        return msgspec.convert({"grantee": grantee}, GrantChange)
    except msgspec.ValidationError:
        note = "project:NAME, workload:PROJECT/NAME, person:NAME or group:NAME"
        raise Refused(Problem(SECRET_INVALID, f"invalid grantee '{grantee}'", note=note)) from None
