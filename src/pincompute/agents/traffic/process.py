"""Process of the registrar of a node: watches its pods, registers them, and serves the endpoints that pods read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import structlog

from pincompute.agents.health import serve_health
from pincompute.agents.traffic.conditions import Reporter
from pincompute.agents.traffic.ensemble import Ensemble
from pincompute.agents.traffic.members import MemberPod, member_of
from pincompute.agents.traffic.registrar import Registrar
from pincompute.agents.traffic.server import EndpointsApi, PodAuthenticator, ServiceReaders
from pincompute.agents.traffic.serversets import Serversets
from pincompute.api.names import SERVERSET_LABEL, WORKLOAD_LABEL
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.http_process import cancel_on_signal, serve_http
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS, SERVICES
from pincompute.kube.watch import Event

ROOT = "/serversets"

log = structlog.get_logger()


class RegistrarOptions(NamedTuple):
    """Options of `pin agent registrar`."""

    zookeeper: str
    """Addresses of the ensemble: HOST:PORT,…"""
    password_file: Path
    listen: str
    """Address of the health page."""
    node: str = ""
    """Only pods of this node are registered; those of all nodes if empty."""
    listen_to_pods: str = ""
    identity: Path | None = None
    """Folder of the identity with which pods are served."""
    own_ensemble: bool = False
    """Whether nothing but this platform uses the ensemble, so that its root is claimed, too."""


async def run(access: Access, options: RegistrarOptions) -> None:
    """Runs until a signal. The session stays open, so that the next process takes its members over."""
    clock = SystemClock()
    with cancel_on_signal():
        async with Client(access, agent="registrar") as client:
            ensemble = Ensemble(options.zookeeper, options.password_file.read_text().strip(), clock)
            node = NodeRegistrar(client, ensemble, clock, options)
            async with serve_health(options.listen, node.seconds_since_heard):
                ensemble.start()
                await node.run()


class NodeRegistrar:
    """The registrar, with its watches of the API server."""

    def __init__(self, client: Client, ensemble: Ensemble, clock: Clock, options: RegistrarOptions) -> None:
        self._ensemble = ensemble
        self._clock = clock
        self._options = options
        fields = f"spec.nodeName={options.node}" if options.node else ""
        labels = f"{SERVERSET_LABEL}=true"
        self._pods = Informer(client, PODS, type=MemberPod, labels=labels, fields=fields, on_change=self._on_pod_change)
        self._services = Informer(
            client, SERVICES, type=ServiceReaders, labels=WORKLOAD_LABEL, on_change=lambda _: self._on_services_change()
        )
        self._on_services_change = lambda: None
        self._reporter = Reporter(client, clock)
        self.registrar = Registrar(ensemble, ROOT, clock, on_pass=self._report, own_ensemble=options.own_ensemble)

    def seconds_since_heard(self) -> float:
        return max(self._pods.staleness_s(), self._services.staleness_s())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            serversets = Serversets(self._ensemble, ROOT, self._clock, group)

            def on_connection_change() -> None:
                self.registrar.reconcile()
                serversets.refresh()

            self._ensemble.on_change = on_connection_change
            self._on_services_change = serversets.notify
            group.create_task(self._pods.run())
            group.create_task(self._services.run())
            # Before the first list, every registered member would look superfluous, and every reader refused.
            await self._pods.synced.wait()
            await self._services.synced.wait()
            self._want()
            group.create_task(self.registrar.run())
            group.create_task(self._reporter.run())
            async with self._serve_pods(serversets):
                await asyncio.Event().wait()

    @asynccontextmanager
    async def _serve_pods(self, serversets: Serversets) -> AsyncGenerator[None]:
        if not self._options.listen_to_pods or self._options.identity is None:
            yield
            return
        authenticator = PodAuthenticator(self._options.identity)
        app = EndpointsApi(serversets, self._services.items, authenticator).application()
        async with serve_http(self._options.listen_to_pods, app, tls=authenticator.context, grace=1.0):
            yield

    def _on_pod_change(self, _: Event[MemberPod]) -> None:
        if self._pods.synced.is_set():
            self._want()

    def _want(self) -> None:
        found = ((each.metadata.uid, member_of(each)) for each in self._pods.items.values())
        self.registrar.wanted = {uid: each for uid, each in found if each}
        self.registrar.reconcile()

    def _report(self) -> None:
        self._reporter.report(self._pods.items.values(), self.registrar, self._ensemble.session)
