"""The cluster cache in virtual time: which events trigger a pass, and how often a rolling runtime is enqueued."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from simulation.clock import VirtualClock, run_in_virtual_time

from pincompute.api.names import PROJECT_LABEL, WORKLOAD_LABEL
from pincompute.controller.cluster_cache import ROLL_COUNT_INTERVAL_S, ClusterCache
from pincompute.controller.passes import Key, Trigger
from pincompute.kube.client import Client
from pincompute.kube.request import Request
from pincompute.objects.content import Object
from pincompute.planning.snapshot import Cluster, ServedCertificate

ROLLING_RUNTIME = Key("", "2", "Runtime")
WEB = Key("me", "web")


class EventSource:
    """A client with watches that yield the events of a test."""

    clock = VirtualClock()
    supports_watch_list = True

    def __init__(self) -> None:
        self._lines: defaultdict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)
        self._revision = 1

    def random(self) -> float:
        return 1.0

    async def watch_list_lines(self, selection: Request) -> AsyncGenerator[bytes]:
        kind = selection.resource
        annotations = {"k8s.io/initial-events-end": "true"}
        yield _line("BOOKMARK", {"metadata": {"resourceVersion": "1", "annotations": annotations}})
        while True:
            yield await self._lines[kind].get()

    def send_event(self, kind: str, body: Object, **metadata: object) -> None:
        self._revision += 1
        full_metadata = {"resourceVersion": str(self._revision), "uid": kind, "generation": 1, **metadata}
        self._lines[kind].put_nowait(_line("MODIFIED", {**body, "metadata": full_metadata}))


class ObservedCache:
    """A cache, and the keys that it has enqueued with the times."""

    def __init__(self, source: EventSource) -> None:
        self.source = source
        self.enqueued: list[tuple[float, Key]] = []
        self.cache = ClusterCache(cast("Client", source), self._record, source.clock)

    def _record(self, key: Key, trigger: Trigger) -> None:
        del trigger
        self.enqueued.append((asyncio.get_running_loop().time(), key))

    async def enqueued_within(self, seconds: float = 0.01) -> list[Key]:
        self.enqueued.clear()
        await asyncio.sleep(seconds)
        return [key for _, key in self.enqueued]


def _line(type_: str, body: Object) -> bytes:
    return msgspec.json.encode({"type": type_, "object": body})


def run_with_cache(work: Any) -> None:
    async def observe() -> None:
        observed = ObservedCache(EventSource())
        running = asyncio.create_task(observed.cache.run())
        await observed.cache.wait_synced()
        await work(observed)
        running.cancel()
        await asyncio.wait({running})

    run_in_virtual_time(observe())


def test_native_without_relevant_change_triggers_no_pass() -> None:
    async def work(observed: ObservedCache) -> None:
        labels = {WORKLOAD_LABEL: "web", PROJECT_LABEL: "me"}

        def send_event(ready: int, observed_generation: int) -> None:
            status = {"readyReplicas": ready, "observedGeneration": observed_generation}
            observed.source.send_event("deployments", {"status": status}, name="web", namespace="me", labels=labels)

        send_event(1, 0)
        assert await observed.enqueued_within() == [WEB]
        send_event(2, 0)
        assert await observed.enqueued_within() == []
        assert observed.cache.includes("Deployment", 3)
        send_event(2, 1)
        assert await observed.enqueued_within() == [WEB]

    run_with_cache(work)


def test_rolling_runtime_is_enqueued_at_once_and_then_once_per_interval() -> None:
    async def work(observed: ObservedCache) -> None:
        spec = {"parts": ["logs-1"], "roll": {"waves": [100]}}
        cursor = {"cursor": {"percent": 100, "since": "2026-01-31T12:00:00Z"}}
        observed.source.send_event("runtimes", {"spec": spec, "status": cursor}, name="2")
        assert await observed.enqueued_within() != []

        def send_event(ready: int) -> None:
            body = {"spec": {"image": "web:1", "port": 80}, "status": {"readyReplicas": ready}}
            observed.source.send_event("pinterestservices", body, name="web", namespace="me")

        send_event(1)
        assert ROLLING_RUNTIME in await observed.enqueued_within()
        send_event(2)
        assert ROLLING_RUNTIME not in await observed.enqueued_within(ROLL_COUNT_INTERVAL_S / 2)
        send_event(3)
        assert (await observed.enqueued_within(ROLL_COUNT_INTERVAL_S)).count(ROLLING_RUNTIME) == 1
        await observed.enqueued_within(ROLL_COUNT_INTERVAL_S)
        send_event(4)
        assert ROLLING_RUNTIME in await observed.enqueued_within()

    run_with_cache(work)


def test_ingress_class_and_certificate_trigger_the_services_that_they_affect() -> None:
    async def work(observed: ObservedCache) -> None:
        def send_service(name: str, **balancer: object) -> None:
            body = {"spec": {"image": "web:1", "port": 80, "loadBalancer": balancer}}
            observed.source.send_event("pinterestservices", body, name=name, namespace="me")

        send_service("web", tls="web-tls")
        send_service("inner", internal=True)
        labels = {WORKLOAD_LABEL: "web", PROJECT_LABEL: "me"}
        observed.source.send_event("ingresses", {}, name="web", namespace="me", labels=labels)
        await observed.enqueued_within()
        observed.source.send_event("ingressclasses", {}, name="fast")
        assert await observed.enqueued_within() == [WEB]
        observed.source.send_event("ingressclasses", {}, name="fast", annotations={"changed": "yes"})
        assert await observed.enqueued_within() == []

        cache, seen = observed.cache, ServedCertificate(("web.example.com",), datetime(2026, 1, 31, tzinfo=UTC))
        ((key, owner, _),) = cache.tls_services()
        assert key == WEB
        observed.enqueued.clear()
        cache.replace_certificates({WEB: seen})
        cache.replace_certificates({WEB: seen})
        assert [key for _, key in observed.enqueued] == [WEB]
        snapshot = cache.snapshot(owner, Cluster(name="main", domain="localhost", port=80))
        assert (snapshot.certificate, snapshot.ingress_classes) == (seen, ("fast",))
        cache.replace_certificates({})
        assert [key for _, key in observed.enqueued] == [WEB, WEB]
        send_service("web", issuer="ca")
        await observed.enqueued_within()
        assert [key for key, _, _ in cache.tls_services()] == [WEB]

    run_with_cache(work)
