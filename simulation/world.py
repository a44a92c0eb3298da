"""A cluster in which the real operator runs: those who keep it going, a person who asks for things, and time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

from pincompute.api.membership import Review
from pincompute.api.names import CLUSTER_FACTS, OPERATOR, REVIEW, SYSTEM
from pincompute.api.status import READY
from pincompute.base.reasons import PAUSED
from pincompute.controller.passes import Key, Outcome
from pincompute.controller.story import Passed, Story
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease, Terms
from pincompute.kube.resource import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, Object, Resource
from pincompute.kube.sender import Carrier
from pincompute.operator.fence import Fenced
from pincompute.operator.loops import Loops
from pincompute.planning.snapshot import Cluster
from simulation.actors import ACTORS
from simulation.clock import VirtualClock
from simulation.line import Faults, Life, Line
from simulation.person import HOME, Person
from simulation.server import Server
from simulation.store import Happened, Store

TICK = 0.1
"""Seconds that those who keep a cluster going take to notice."""
RESTART = 1.0
"""Seconds until an operator that was killed is started again."""
QUIET = 90.0
"""Seconds without a change after which nothing more will come: longer than any pause between two tries."""
PATIENCE = 3600.0
CALM = 900.0
"""Seconds in which nothing may be written at the end."""
LASTING = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon", "Project")

FACTS = {"name": "simulated", "domain": "localhost", "port": "8080", "nodes": "real", "serves": "PyTorchJob TFJob"}


TERMS = Terms(lasts=300.0, renewed=60.0, given_up=200.0)
"""Few renewals: they are not what is looked at."""


class Counting(Story):
    """How many passes a key needs until it has nothing more to write, while nobody else moves."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self.conflicts = 0
        self._passes: Counter[Key] = Counter()

    def add(self, key: Key, passed: Passed) -> None:
        super().add(key, passed)
        self.conflicts += passed.outcome is Outcome.CONFLICT
        if passed.outcome in {Outcome.SETTLED, Outcome.GONE}:
            self._passes.pop(key, None)
        elif passed.outcome is not Outcome.BEHIND:
            # Who only waits to see what it wrote has not planned.
            self._passes[key] += 1
            self.most = max(self.most, self._passes[key])

    def begin(self) -> None:
        """What was before does not count."""
        self.most = 0
        self._passes.clear()

    def moved(self) -> None:
        """Somebody else has: what comes next is no more the operator's own doing."""
        self._passes.clear()


class Unsettled(AssertionError):  # noqa: N818
    """The world does not come to rest."""


class World:
    """Made inside of a running loop; `here` in scenarios."""

    def __init__(self, faults: Faults | None = None, seed: int = 0, terms: Terms = TERMS) -> None:
        self.store = Store()
        self.server = Server(self.store)
        self.faults = faults or Faults()
        self.clock = VirtualClock()
        self.chance = random.Random(seed)
        self.person = Person(self._client("person", Line(self.server, Life())))
        self.moved = 0.0
        """When anything changed that matters."""
        self.changes = 0
        """How often that was."""
        self.lives = 0
        self.terms = terms
        self.loops: Loops | None = None
        self.lease: Lease | None = None
        """Of the operator that lives."""
        self.story = Counting()
        self._life = Life()
        self._running: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None] | None] = {asyncio.current_task()}
        """Whatever they do, the operator has not done."""
        self.store.listen(self._heard)

    async def begin(self) -> None:
        for name in (SYSTEM, HOME):
            self.store.create(NAMESPACES, _namespace(name))
        for number in range(3):
            metadata = {"name": f"node-{number}", "labels": {"kubernetes.io/os": "linux"}}
            self.store.create(NODES, {"metadata": metadata, "spec": {}})
        self.store.create(CONFIG_MAPS, {"metadata": {"name": CLUSTER_FACTS, "namespace": SYSTEM}, "data": FACTS})
        self._keeping = asyncio.create_task(self._keep())
        self._others.add(self._keeping)
        self.start()

    async def end(self) -> None:
        self._life.over = True
        for task in (self._running, self._keeping):
            if task:
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled() and (error := task.exception()):
                    raise error

    @property
    def leads(self) -> bool:
        return self.lease is not None and self.lease.held

    def ailing(self) -> list[str]:
        """Workloads that always run, and are not as they are wanted although nobody keeps them from it."""
        return [
            f"{each['kind']} {each['metadata']['name']} is not ready: {said.get('reason')}: {said.get('message')}"
            for kind, each in self.store.everything()
            if kind.kind in LASTING
            for said in [_goal(each)]
            if (said.get("status") != "True" and said.get("reason") != PAUSED.code)
            or each["status"].get("observedGeneration") != each["metadata"]["generation"]
        ]

    def start(self) -> None:
        """A new operator, that remembers nothing."""
        self.lives += 1
        self._life = Life()
        self._running = asyncio.create_task(self._operate(self._life))

    def kill(self) -> None:
        """At once, whatever it does; another is started soon."""
        self._life.over = True
        if self._running:
            self._running.cancel()
        self.moved = max(self.moved, self._time())
        asyncio.get_running_loop().call_later(RESTART, self.start)

    def meanwhile(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Somebody does something of their own."""
        task = asyncio.create_task(work)
        self._others.add(task)
        return task

    async def settle(self) -> None:
        """Until nothing has changed for long."""
        began = self._time()
        self.moved = max(self.moved, began)
        while (left := self.moved + QUIET + self.clock.back - self._time()) > 0:
            if self._time() - began > PATIENCE:
                raise Unsettled(f"something still changes after {PATIENCE:.0f} s")
            await asyncio.sleep(left)
            if self._running and self._running.done():
                self._running.result()

    async def calm(self, written: Sequence[str]) -> list[str]:
        """What is wrong after a long time in which nobody does anything: `written` grows by each write."""
        count = len(written)
        await asyncio.sleep(CALM)
        return [f"written in the calm at the end: {each}" for each in written[count:]]

    def _client(self, agent: str, line: Carrier) -> Client:
        access = Access(server="https://simulated")
        return Client(access, agent, transport=line, clock=self.clock, chance=self.chance.random)

    def _line(self, life: Life) -> Line:
        """Of the lease."""
        return Line(self.server, life, self.faults if self.faults.whole else None)

    async def _operate(self, life: Life) -> None:
        lease = self.lease = Lease(self._client("lease", self._line(life)), SYSTEM, OPERATOR, "operator", self.terms)
        fenced = Fenced(Line(self.server, life, self.faults), lambda: lease.held)
        loops = self.loops = Loops(self._client("operator", fenced), Cluster.of(FACTS), lease)
        loops.planned.story = self.story
        await loops.run()

    async def _keep(self) -> None:
        """Each takes its step, until nobody has one left."""
        while True:
            self.store.moved.clear()
            waits = [wait for actor in ACTORS if (wait := actor(self.store)) is not None]
            if not self.store.moved.is_set():
                try:
                    async with asyncio.timeout(max(TICK, min(waits)) if waits else None):
                        await self.store.moved.wait()
                except TimeoutError:
                    continue
            await asyncio.sleep(TICK)

    def _heard(self, resource: Resource, _: Happened) -> None:
        if resource in {LEASES, EVENTS}:
            return
        self.moved = max(self.moved, self._time())
        self.changes += 1
        if asyncio.current_task() in self._others:
            self.story.moved()

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


def _goal(workload: Object) -> Object:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == READY), {})


def _namespace(name: str) -> Object:
    metadata = {"name": name, "labels": {REVIEW: str(Review.OPEN)}}
    return {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
