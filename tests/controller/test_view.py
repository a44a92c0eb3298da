"""What the operator sees, on a virtual clock: which events are news, and when a roll's workloads are counted."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Any, cast

import msgspec
from simulation.clock import VirtualClock, run

from pincompute.api.names import PROJECT, WORKLOAD
from pincompute.controller.passes import Cause, Key
from pincompute.controller.view import COUNTED, View
from pincompute.kube.client import Client
from pincompute.kube.request import Request
from pincompute.objects.content import Object

ROLL = Key("", "2", "Runtime")
WEB = Key("me", "web")


class Server:
    """Stands in for a client: it tells what it is given, to whoever watches that kind."""

    clock = VirtualClock()
    streams = True

    def __init__(self) -> None:
        self._lines: defaultdict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)
        self._revision = 1

    def chance(self) -> float:
        return 1.0

    async def stream_lines(self, selection: Request) -> AsyncGenerator[bytes]:
        kind = selection.resource
        annotations = {"k8s.io/initial-events-end": "true"}
        yield _line("BOOKMARK", {"metadata": {"resourceVersion": "1", "annotations": annotations}})
        while True:
            yield await self._lines[kind].get()

    def tell(self, kind: str, body: Object, **metadata: object) -> None:
        self._revision += 1
        given = {"resourceVersion": str(self._revision), "uid": kind, "generation": 1, **metadata}
        self._lines[kind].put_nowait(_line("MODIFIED", {**body, "metadata": given}))


class Seen:
    """A view, and whom it has touched since that was last asked, and when."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.touched: list[tuple[float, Key]] = []
        self.view = View(cast("Client", server), self._touch, server.clock)

    def _touch(self, key: Key, cause: Cause) -> None:
        del cause
        self.touched.append((asyncio.get_running_loop().time(), key))

    async def after(self, seconds: float = 0.01) -> list[Key]:
        self.touched.clear()
        await asyncio.sleep(seconds)
        return [key for _, key in self.touched]


def _line(type_: str, body: Object) -> bytes:
    return msgspec.json.encode({"type": type_, "object": body})


def looking(work: Any) -> None:
    async def look() -> None:
        seen = Seen(Server())
        watching = asyncio.create_task(seen.view.run())
        await seen.view.synced()
        await work(seen)
        watching.cancel()
        await asyncio.wait({watching})

    run(look())


def test_a_native_that_says_nothing_new_touches_nobody() -> None:
    async def work(seen: Seen) -> None:
        labels = {WORKLOAD: "web", PROJECT: "me"}

        def tell(ready: int, observed: int) -> None:
            status = {"readyReplicas": ready, "observedGeneration": observed}
            seen.server.tell("deployments", {"status": status}, name="web", namespace="me", labels=labels)

        tell(1, 0)
        assert await seen.after() == [WEB]
        tell(2, 0)
        assert await seen.after() == []
        assert seen.view.includes("Deployment", 3)
        tell(2, 1)
        assert await seen.after() == [WEB]

    looking(work)


def test_the_first_that_changes_in_a_roll_is_counted_at_once_and_many_together() -> None:
    async def work(seen: Seen) -> None:
        spec = {"parts": ["logs-1"], "roll": {"waves": [100]}}
        cursor = {"cursor": {"percent": 100, "since": "2026-01-31T12:00:00Z"}}
        seen.server.tell("runtimes", {"spec": spec, "status": cursor}, name="2")
        assert await seen.after() != []

        def tell(ready: int) -> None:
            body = {"spec": {"image": "web:1", "port": 80}, "status": {"readyReplicas": ready}}
            seen.server.tell("pinterestservices", body, name="web", namespace="me")

        tell(1)
        assert ROLL in await seen.after()
        tell(2)
        assert ROLL not in await seen.after(COUNTED / 2)
        tell(3)
        assert (await seen.after(COUNTED)).count(ROLL) == 1
        await seen.after(COUNTED)
        tell(4)
        assert ROLL in await seen.after()

    looking(work)
