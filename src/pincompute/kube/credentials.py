"""Credentials: what is shown to one API server now, renewed when it is not accepted any more."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from pincompute.base.clock import Clock
from pincompute.kube.access import Access
from pincompute.kube.plugin import Credential, Plugin

MARGIN = timedelta(seconds=5)
"""What expires sooner than this is not shown: it might be too old when it arrives."""


class Shown(NamedTuple):
    bearer: str
    tls: ssl.SSLContext | bool


class Credentials:
    """A plugin is asked once for all who wait for it."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._tls = self._context(access)
        self._credential: Credential | None = None
        self._asking = asyncio.Lock()

    async def show(self) -> Shown:
        plugin = self._access.plugin
        if plugin is None:
            return Shown(self._access.bearer(), self._tls)
        async with self._asking:
            given = self._credential
            if given is None or (given.expires and given.expires <= self._clock.now() + MARGIN):
                given = await self._ask(plugin)
        return Shown(given.token, self._tls)

    async def renew(self, refused: Shown) -> bool:
        """After this one was not accepted: whether there is another to show."""
        plugin = self._access.plugin
        if plugin is None:
            return False
        async with self._asking:
            given = self._credential
            if given and Shown(given.token, self._tls) == refused:
                await self._ask(plugin)
        return True

    async def _ask(self, plugin: Plugin) -> Credential:
        given = await plugin.ask()
        before = self._credential or Credential()
        if (given.certificate, given.key) != (before.certificate, before.key):
            self._tls = self._context(replace(self._access, certificate=given.certificate, key=given.key))
        self._credential = given
        return given

    def _context(self, access: Access) -> ssl.SSLContext | bool:
        return access.tls() if access.server.startswith("https") else True
