"""A simulated cluster in which the real operator runs, with its users and Kubernetes' own controllers."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

from pincompute.api.membership import ReviewMode
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, OPERATOR, REVIEW_LABEL, SYSTEM_NAMESPACE
from pincompute.api.status import READY
from pincompute.base.reasons import EXPIRED, PAUSED
from pincompute.controller.pass_history import PassHistory, PassRecord
from pincompute.controller.passes import Key, Outcome
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease, LeaseTimings
from pincompute.kube.resource import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, Object, Resource
from pincompute.kube.retrying_transport import BaseTransport
from pincompute.operator.lease_guard import LeaseGuard
from pincompute.operator.manager import ControllerManager
from pincompute.planning.snapshot import Cluster
from simulation.api_server import SimulatedApiServer
from simulation.clock import VirtualClock
from simulation.controllers import CONTROLLERS
from simulation.object_store import ObjectStore, StoreEvent
from simulation.transport import FaultHooks, SimulatedProcess, SimulatedTransport
from simulation.user import DEFAULT_PROJECT, SimulatedUser

CONTROLLER_DELAY_S = 0.1
"""Time until Kubernetes' controllers react to a change."""
RESTART_DELAY_S = 1.0
"""Time until a killed operator is started again."""
QUIET_S = 90.0
"""Time without a change after which the cluster counts as settled: longer than the longest backoff."""
MAX_SETTLE_S = 3600.0
CALM_S = 900.0
"""Time at the end of a run in which the operator must not write."""
NODE_COUNT = 3
LONG_RUNNING_KINDS = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon", "Project")

FACTS = {"name": "simulated", "domain": "localhost", "port": "8080", "nodes": "real", "serves": "PyTorchJob TFJob"}


RARE_RENEWALS = LeaseTimings(duration_s=300.0, renew_interval_s=60.0, renew_deadline_s=200.0)
"""Renewals are rare, because they are not what most runs test, and they cost time."""


class PassCounter(PassHistory):
    """Counts the passes that a key needs to come to rest while no other writer acts."""

    def __init__(self) -> None:
        super().__init__()
        self.max_passes = 0
        self.conflicts = 0
        self._passes: Counter[Key] = Counter()

    def add(self, key: Key, record: PassRecord) -> None:
        super().add(key, record)
        self.conflicts += record.outcome is Outcome.CONFLICT
        if record.outcome in {Outcome.UNCHANGED, Outcome.DELETED}:
            self._passes.pop(key, None)
        elif record.outcome is not Outcome.STALE_CACHE:
            # A pass that was skipped because of a stale cache has planned nothing, and does not count.
            self._passes[key] += 1
            self.max_passes = max(self.max_passes, self._passes[key])

    def reset(self) -> None:
        """Forgets all counts."""
        self.max_passes = 0
        self._passes.clear()

    def others_acted(self) -> None:
        """Starts counting again: passes from here on may be due to another writer."""
        self._passes.clear()


class NotSettledError(AssertionError):
    """The cluster does not come to rest."""


class SimulatedCluster:
    """API server, controllers, users and operator. Must be created inside a virtual event loop."""

    def __init__(self, faults: FaultHooks | None = None, seed: int = 0, timings: LeaseTimings = RARE_RENEWALS) -> None:
        self.store = ObjectStore()
        self.server = SimulatedApiServer(self.store)
        self.faults = faults or FaultHooks()
        self.clock = VirtualClock()
        self.random = random.Random(seed)
        self.user = SimulatedUser(self._new_client("user", SimulatedTransport(self.server, SimulatedProcess())))
        self.last_change_at = 0.0
        """When an object last changed, leases and events aside."""
        self.change_count = 0
        self.process_starts = 0
        """How often the operator was started."""
        self.timings = timings
        self.manager: ControllerManager | None = None
        """Of the running operator, as is the lease."""
        self.lease: Lease | None = None
        self.history = PassCounter()
        """Kept over restarts of the operator."""
        self._process = SimulatedProcess()
        self._operator_task: asyncio.Task[None] | None = None
        self._controllers_task: asyncio.Task[None] | None = None
        self._other_writers: set[asyncio.Task[None] | None] = {asyncio.current_task()}
        """Tasks of other writers than the operator."""
        self.store.listen(self._on_change)

    async def begin(self) -> None:
        """Creates the objects of an empty cluster and starts controllers and operator."""
        for name in (SYSTEM_NAMESPACE, DEFAULT_PROJECT):
            self.store.create(NAMESPACES, _namespace(name))
        for number in range(NODE_COUNT):
            metadata = {"name": f"node-{number}", "labels": {"kubernetes.io/os": "linux"}}
            self.store.create(NODES, {"metadata": metadata, "spec": {}})
        self.store.create(
            CONFIG_MAPS, {"metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE}, "data": FACTS}
        )
        self._controllers_task = asyncio.create_task(self._run_controllers())
        self._other_writers.add(self._controllers_task)
        self.start()

    async def end(self) -> None:
        """Stops everything; raises the exception of a task that failed."""
        self._process.killed = True
        for task in (self._operator_task, self._controllers_task):
            if task:
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled() and (error := task.exception()):
                    raise error

    @property
    def is_leader(self) -> bool:
        return self.lease is not None and self.lease.held

    def unhealthy_workloads(self) -> list[str]:
        """Long-running workloads that are not ready in a settled cluster, except for paused and expired ones."""
        return [
            f"{each['kind']} {each['metadata']['name']} is not ready: {ready.get('reason')}: {ready.get('message')}"
            for kind, each in self.store.everything()
            if kind.kind in LONG_RUNNING_KINDS
            for ready in [_ready_condition(each)]
            if (ready.get("status") != "True" and ready.get("reason") not in {PAUSED.code, EXPIRED.code})
            or each["status"].get("observedGeneration") != each["metadata"]["generation"]
        ]

    def start(self) -> None:
        """Starts an operator process with an empty memory."""
        self.process_starts += 1
        self._process = SimulatedProcess()
        self._operator_task = asyncio.create_task(self._run_operator(self._process))

    def kill(self) -> None:
        """Kills the operator at once, as SIGKILL would, and restarts it after a delay."""
        self._process.killed = True
        if self._operator_task:
            self._operator_task.cancel()
        self.last_change_at = max(self.last_change_at, self._time())
        asyncio.get_running_loop().call_later(RESTART_DELAY_S, self.start)

    def run_beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs the work of another writer in a task of its own."""
        task = asyncio.create_task(work)
        self._other_writers.add(task)
        return task

    async def settle(self) -> None:
        """Waits until the cluster has not changed for a long time."""
        began = self._time()
        self.last_change_at = max(self.last_change_at, began)
        while (left := self.last_change_at + QUIET_S + self.clock.max_set_back_s - self._time()) > 0:
            if self._time() - began > MAX_SETTLE_S:
                raise NotSettledError(f"the cluster still changes after {MAX_SETTLE_S:.0f} s")
            await asyncio.sleep(left)
            if self._operator_task and self._operator_task.done():
                self._operator_task.result()

    async def watch_calm(self, writes: Sequence[str]) -> list[str]:
        """Waits for a long time and reports the writes that were added to the sequence meanwhile."""
        count = len(writes)
        await asyncio.sleep(CALM_S)
        return [f"written although the cluster was settled: {each}" for each in writes[count:]]

    def _new_client(self, agent: str, transport: BaseTransport) -> Client:
        access = Access(server="https://simulated")
        return Client(access, agent, transport=transport, clock=self.clock, chance=self.random.random)

    def _lease_transport(self, process: SimulatedProcess) -> SimulatedTransport:
        return SimulatedTransport(self.server, process, self.faults if self.faults.affects_lease else None)

    async def _run_operator(self, process: SimulatedProcess) -> None:
        """The same wiring as in `operator.process`, on a simulated transport."""
        lease = self.lease = Lease(
            self._new_client("lease", self._lease_transport(process)),
            SYSTEM_NAMESPACE,
            OPERATOR,
            "operator",
            self.timings,
        )
        guarded = LeaseGuard(SimulatedTransport(self.server, process, self.faults), lambda: lease.held)
        manager = self.manager = ControllerManager(
            self._new_client("operator", guarded), Cluster.from_facts(FACTS), lease
        )
        manager.loop.history = self.history
        await manager.run()

    async def _run_controllers(self) -> None:
        """Runs all controllers after each change and when one of them has a timer, until nothing changes any more."""
        while True:
            self.store.changed_event.clear()
            waits = [wait for controller in CONTROLLERS if (wait := controller(self.store)) is not None]
            if not self.store.changed_event.is_set():
                try:
                    async with asyncio.timeout(max(CONTROLLER_DELAY_S, min(waits)) if waits else None):
                        await self.store.changed_event.wait()
                except TimeoutError:
                    continue
            await asyncio.sleep(CONTROLLER_DELAY_S)

    def _on_change(self, resource: Resource, _: StoreEvent) -> None:
        if resource in {LEASES, EVENTS}:
            return
        self.last_change_at = max(self.last_change_at, self._time())
        self.change_count += 1
        if asyncio.current_task() in self._other_writers:
            self.history.others_acted()

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


def _ready_condition(workload: Object) -> Object:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == READY), {})


def _namespace(name: str) -> Object:
    metadata = {"name": name, "labels": {REVIEW_LABEL: str(ReviewMode.OPEN)}}
    return {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
