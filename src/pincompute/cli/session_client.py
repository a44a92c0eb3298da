"""Requests of `pin open` to the desk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import msgspec

from pincompute.api.session import EndedSessions, SessionLink

Fetch = Callable[[str, str, bytes], Awaitable[bytes]]
"""Sends method, path and body; returns the body of the response."""


class SessionClient:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def create_link(self) -> SessionLink:
        return msgspec.json.decode(await self._fetch("POST", "/session/link", b""), type=SessionLink)

    async def end_all(self, user: str) -> EndedSessions:
        """End all sessions of a user; of the caller for an empty name."""
        query = f"?{urlencode({'user': user})}" if user else ""
        return msgspec.json.decode(await self._fetch("DELETE", f"/v1/sessions{query}", b""), type=EndedSessions)
