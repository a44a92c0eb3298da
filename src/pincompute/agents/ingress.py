"""Ingress agent: runs nginx with the routes of a cluster's Ingresses.

nginx outlives the agent, so that requests are served while there is none: the next agent takes it over. Only Ctrl-C and
`pin down` end both.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import structlog

from pincompute.agents.host_certificates import HostCertificates
from pincompute.agents.ingress_status import changed_points, port_of, write_points
from pincompute.agents.nginx import Nginx, worker_user
from pincompute.agents.nginx_config import nginx_config
from pincompute.agents.routes import (
    NO_ENDPOINTS,
    EndpointSlice,
    HostPolicy,
    Ingress,
    Namespace,
    ReadyEndpoints,
    RouteConflict,
    Service,
    build_route_table,
    needs_reload,
    ready_endpoints,
)
from pincompute.api.hosts import HostRules
from pincompute.base.backoff import backoff_s
from pincompute.base.http_process import cancel_on_signal
from pincompute.base.reexec import REEXEC_VARIABLE, reexec
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, NotFound
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import ENDPOINT_SLICES, INGRESSES, NAMESPACES, SERVICES
from pincompute.kube.watch import MODIFIED, Event

RELOAD_INTERVAL_S = 0.1
"""Shortest time between two reloads, so that a burst of changes causes one."""
ENDPOINTS_DELAY_S = 2.0
"""Delay of a reload for changed endpoints, while nginx still knows enough of them."""
REPORT_DELAY_S = 0.2
"""Delay of the report of served hosts: nginx replaces its workers some time after it was told to reload."""
RESYNC_INTERVAL_S = 60.0
"""Longest time between two passes, also without a change."""

log = structlog.get_logger()


async def run(  # noqa: PLR0913  (each is an option of the command)
    kubeconfig: Path,
    listen: str,
    folder: Path,
    program: Path,
    *,
    watch_endpoints: bool,
    rules: HostRules,
    certificates: HostCertificates | None = None,
) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(load_kubeconfig(kubeconfig), agent="ingress") as client:
            agent = IngressAgent(
                client, listen, folder, program,
                watch_endpoints=watch_endpoints, rules=rules, certificates=certificates,
            )  # fmt: skip
            agent.handle_signals()
            await agent.run()


class IngressAgent:
    """Watches Ingresses, Services, EndpointSlices and Namespaces, and keeps nginx running with their configuration."""

    def __init__(  # noqa: PLR0913  (each is an option of the command)
        self,
        client: Client,
        listen: str,
        folder: Path,
        program: Path,
        *,
        watch_endpoints: bool,
        rules: HostRules,
        certificates: HostCertificates | None = None,
    ) -> None:
        self._client = client
        self._changed = asyncio.Event()
        self._ingresses = Informer(client, INGRESSES, type=Ingress, on_change=lambda _: self._changed.set())
        self._services = Informer(client, SERVICES, type=Service, on_change=lambda _: self._changed.set())
        self._namespaces = Informer(client, NAMESPACES, type=Namespace, on_change=self._on_namespace_change)
        self._slices = Informer(client, ENDPOINT_SLICES, type=EndpointSlice, on_change=self._on_endpoints_change)
        self._nginx = Nginx(program, folder, on_end=self._changed.set)
        self._watch_endpoints = watch_endpoints
        self._rules = rules
        self._certificates = certificates
        self._listen = listen
        self._folder = folder
        self._config = ""
        self._reportable: tuple[list[Ingress], tuple[RouteConflict, ...]] = ([], ())
        """The Ingresses that nginx serves, and the routes that they do not get."""
        self._served = asyncio.Event()
        """Set after each pass in which nginx serves all routes."""
        self._report_failures: dict[str, str] = {}
        """Ingresses whose status could not be written, each with the reason."""
        self._rejected = False
        """nginx has rejected the present configuration, so that new routes are not served."""
        self._configured_endpoints: ReadyEndpoints = NO_ENDPOINTS
        self._conflicts: tuple[RouteConflict, ...] = ()
        self._configured_ingresses: list[Ingress] = []
        self._failures = 0
        self._delayed_reload: asyncio.TimerHandle | None = None
        self._next_version: Path | None = None
        self._stops_nginx = False

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            if self._stops_nginx:
                await self._nginx.stop()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ingresses.run())
            group.create_task(self._services.run())
            group.create_task(self._namespaces.run())
            if self._watch_endpoints:
                group.create_task(self._slices.run())
            self._config = await self._nginx.adopt()
            # Routes of an incomplete view would remove those that nginx serves already.
            await self._ingresses.synced.wait()
            await self._services.synced.wait()
            await self._namespaces.synced.wait()
            group.create_task(self._report_loop())
            await self._reconcile_loop()

    async def _reconcile_loop(self) -> None:
        """Reconfigures and restarts nginx after every change of the cluster and every exit of nginx."""
        while True:
            self._changed.clear()
            if self._next_version:
                # At this point nginx is neither starting nor stopping, and stays a child of this process.
                log.info("reexec")
                reexec(self._next_version)
            await self._configure_nginx()
            await self._ensure_running()
            if self._nginx.running and not self._rejected:
                self._reportable = (self._configured_ingresses, self._conflicts)
                self._served.set()
            await asyncio.sleep(max(RELOAD_INTERVAL_S, backoff_s(self._failures, 1) if self._failures else 0))
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._failures else RESYNC_INTERVAL_S):
                    await self._changed.wait()

    def handle_signals(self) -> None:
        """On SIGINT, which a terminal sends, ends nginx with this process.

        On SIGHUP, if the parent process set the variable, replaces this program by its next version.
        """
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._end_with_nginx, task)
        if file := os.environ.get(REEXEC_VARIABLE):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._request_reexec, Path(file))

    def _end_with_nginx(self, task: asyncio.Task[None]) -> None:
        self._stops_nginx = True
        task.cancel()

    def _request_reexec(self, file: Path) -> None:
        self._next_version = file
        self._changed.set()

    def _on_endpoints_change(self, event: Event[EndpointSlice]) -> None:
        if needs_reload(ready_endpoints([event.object]), self._configured_endpoints):
            self._changed.set()
        elif self._delayed_reload is None:
            self._delayed_reload = asyncio.get_running_loop().call_later(ENDPOINTS_DELAY_S, self._changed.set)

    def _on_namespace_change(self, event: Event[Namespace]) -> None:
        # Only its existence and its hosts matter; other annotations change often.
        if event.type != MODIFIED or event.before is None or event.before.hosts != event.object.hosts:
            self._changed.set()

    async def _configure_nginx(self) -> None:
        if self._delayed_reload is not None:
            self._delayed_reload.cancel()
            self._delayed_reload = None
        endpoints = ready_endpoints(self._slices.items.values())
        self._configured_endpoints = endpoints
        listed = {each.metadata.name: each.hosts for each in self._namespaces.items.values()}
        self._configured_ingresses = [each for each in self._ingresses.items.values() if each.is_ours]
        routes, conflicts = build_route_table(
            self._configured_ingresses, self._services.items, endpoints, HostPolicy(self._rules, listed)
        )
        for conflict in set(conflicts) - set(self._conflicts):
            log.warning("route conflict", **conflict._asdict())
        self._conflicts = conflicts
        https = self._certificates.issue_for(routes) if self._certificates else None
        config = nginx_config(routes, self._listen, self._folder, worker_user(), self._rules, https=https)
        renewed = self._certificates is not None and self._certificates.take_renewed()
        if config == self._config and not renewed:
            return
        self._config = config
        error = await self._nginx.reconfigure(config)
        self._rejected = bool(error)
        if error:
            # nginx continues with the previous configuration.
            log.error("nginx configuration rejected", why=error)
        else:
            log.info("nginx configured", routes=len(routes), faults=sum(bool(route.fault) for route in routes))

    async def _report_loop(self) -> None:
        """Reports the hosts after each pass. In a task of its own, so that no request delays the next configuration."""
        while True:
            await self._served.wait()
            await asyncio.sleep(REPORT_DELAY_S)
            self._served.clear()
            await self._report_hosts()

    async def _report_hosts(self) -> None:
        """Writes the served hosts to the status of each Ingress of which they have changed.

        An Ingress that cannot be reported does not hold up the others; it is tried again after the next pass.
        """
        failures: dict[str, str] = {}
        ingresses, conflicts = self._reportable
        for ingress, points in changed_points(ingresses, conflicts, port_of(self._listen)):
            try:
                await write_points(self._client, ingress, points)
            except NotFound:
                continue
            except ApiError as error:
                failures[f"{ingress.metadata.namespace}/{ingress.metadata.name}"] = error.message
                if not HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    break
        for name, why in failures.items():
            if self._report_failures.get(name) != why:
                log.warning("status not written", ingress=name, why=why)
        self._report_failures = failures

    async def _ensure_running(self) -> None:
        if self._nginx.running:
            self._nginx.rotate_logs()
        elif why := await self._nginx.start():
            self._failures += 1
            log.error("nginx start failed", why=why, failures=self._failures)
        else:
            self._failures = 0
            log.info("nginx started", listen=self._listen)
