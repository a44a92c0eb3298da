"""Current credentials for one API server, refreshed when they expire or are rejected."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from pincompute.base.clock import Clock
from pincompute.kube.access import Access
from pincompute.kube.plugin import ExecCredential, ExecPlugin

EXPIRY_MARGIN = timedelta(seconds=5)
"""A credential that expires sooner is not used: it could expire before the request arrives."""


class AuthMaterial(NamedTuple):
    bearer_token: str
    ssl_context: ssl.SSLContext | bool


class Credentials:
    """Credentials of an Access. Concurrent requests share one run of a credential plugin."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._ssl_context = self._build_context(access)
        self._credential: ExecCredential | None = None
        self._plugin_lock = asyncio.Lock()

    async def current(self) -> AuthMaterial:
        plugin = self._access.plugin
        if plugin is None:
            return AuthMaterial(self._access.bearer_token(), self._ssl_context)
        async with self._plugin_lock:
            credential = self._credential
            if credential is None or (credential.expires and credential.expires <= self._clock.now() + EXPIRY_MARGIN):
                credential = await self._run_plugin(plugin)
        return AuthMaterial(credential.token, self._ssl_context)

    async def refresh(self, rejected: AuthMaterial) -> bool:
        """Replaces credentials that the server has rejected. False if there are no others to try."""
        plugin = self._access.plugin
        if plugin is None:
            return False
        async with self._plugin_lock:
            credential = self._credential
            if credential and AuthMaterial(credential.token, self._ssl_context) == rejected:
                await self._run_plugin(plugin)
        return True

    async def _run_plugin(self, plugin: ExecPlugin) -> ExecCredential:
        credential = await plugin.fetch_credential()
        before = self._credential or ExecCredential()
        if (credential.certificate, credential.key) != (before.certificate, before.key):
            self._ssl_context = self._build_context(
                replace(self._access, certificate=credential.certificate, key=credential.key)
            )
        self._credential = credential
        return credential

    def _build_context(self, access: Access) -> ssl.SSLContext | bool:
        return access.ssl_context() if access.server.startswith("https") else True
