"""Listeners of the stores that pods and processes of the platform call: each trusts one authority only."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from pincompute.agents.callers import LOOPBACK_CALLER, Caller, platform_caller, pod_caller
from pincompute.agents.identity.bundle import own_id, server_context
from pincompute.base.http_process import client_certificate, mutual_tls_context


class TlsListener(NamedTuple):
    """Listener for processes of the platform outside the cluster."""

    listen: str
    certificate: Path
    trust: Path

    def ssl_context(self) -> ssl.SSLContext:
        return mutual_tls_context(self.certificate, self.trust)

    def authenticate(self, request: web.Request) -> Caller:
        return platform_caller(client_certificate(request))


class PodListener(NamedTuple):
    """Listener for pods. Their certificates are from another authority, which is trusted only here."""

    listen: str
    identity: Path
    """Folder of the store's own identity."""

    def ssl_context(self) -> ssl.SSLContext:
        return server_context(self.identity)

    def authenticate(self, request: web.Request) -> Caller:
        return pod_caller(client_certificate(request), own_id(self.identity).trust_domain)


class LoopbackListener(NamedTuple):
    """Listener for users. The API server forwards their connections to the loopback address of this pod."""

    listen: str

    def ssl_context(self) -> None:
        """None: the API server's connection to the pod is encrypted already."""

    def authenticate(self, _: web.Request) -> Caller:
        return LOOPBACK_CALLER


Listener = TlsListener | PodListener | LoopbackListener
Listeners = Sequence[Listener]
