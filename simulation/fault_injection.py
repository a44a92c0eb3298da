"""Injects one fault at one numbered write of the operator, and checks every write for what must never be sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import msgspec

from pincompute.api.names import GROUP
from pincompute.base.reasons import NOT_OWNED
from pincompute.controller.resources import ALL_NATIVES
from pincompute.kube.errors import ApiError, Conflict, parse_error
from pincompute.kube.request import Request
from pincompute.kube.resource import EVENTS, LEASES
from pincompute.objects.owners import controller_uid
from simulation import faults
from simulation.api_errors import ApiRefusal
from simulation.api_server import parse_path
from simulation.cluster import RARE_RENEWALS, SimulatedCluster
from simulation.faults import FaultPoint, WorldMark
from simulation.foreign_writers import ForeignWriter, edit_as_foreign_writer
from simulation.object_store import ObjectStore
from simulation.transport import NETWORK_DELAY_S, WATCH_DELAY_S, FaultHooks, connection_lost

EVENT_DELAY_S = 5.0
"""How long watch events are held back."""
CLOCK_ERROR_S = 45.0
"""By how much a clock is set ahead, or back."""
LATE_WRITE_S = 10.0
"""Time after the last change of the cluster in which the operator may still write."""
PARTIAL_SYNC_S = 1.0
"""How much later a restarted operator receives the planning inputs than everything else."""
PLANNING_INPUTS = {"projects", "runtimes", "pinterestsidecars"}

_NAME_TAKEN_MESSAGE = re.compile(r"(\w+)/(\S+) exists already")

TIMEOUT_REFUSAL = ApiRefusal(504, "Timeout", "request did not complete within the allotted timeout")
REFUSALS = {
    faults.WRITE_CONFLICT: ApiRefusal(409, "Conflict", "Operation cannot be fulfilled: the object has been modified"),
    faults.SERVER_ERROR: ApiRefusal(500, "InternalError", "Internal error occurred: simulated"),
    faults.SHUTTING_DOWN: ApiRefusal(503, "ServiceUnavailable", "apiserver is shutting down"),
    faults.THROTTLED: ApiRefusal(
        429, "TooManyRequests", "the server has received too many requests", {"retryAfterSeconds": 3}
    ),
    faults.STORAGE_FULL: ApiRefusal(500, "", "etcdserver: mvcc: database space exceeded"),
}


class FaultInjector(FaultHooks):
    """Numbers the operator's writes and injects the fault of its point. Without a point it only records."""

    def __init__(self, point: FaultPoint | None = None) -> None:
        self.point: FaultPoint | None = point
        self.writes: list[str] = []
        """Method and path of each write, in order."""
        self.write_times: list[float] = []
        self.step = 0
        """Index of the present step of the scenario."""
        self.steps: list[int] = []
        """The step in which each write was sent."""
        self.world_marks: list[list[WorldMark]] = []
        """The cluster before each write was received, after it was executed, and when its response arrived."""
        self.cluster: SimulatedCluster | None = None
        self.foreign_writer: ForeignWriter | None = None
        self.next_step: Callable[[], Awaitable[None]] | None = None
        """The next action of the users, if the scenario allows it to start early."""
        self.hurried_step: asyncio.Task[None] | None = None
        """That action, if it was started early."""
        self.violations: list[str] = []
        """Writes that must never be sent."""
        self._stalled_at = 0.0
        self._killed_at = 0.0
        self._fault_request: Request | None = None
        """The request at which the fault happened. Other requests may be in flight beside it."""
        self._silent_until = 0.0
        self._in_flight: dict[int, int] = {}
        """Numbers of the writes in flight, by identity of the request."""
        self._status_revisions: dict[str, str] = {}
        """The revision at which each status was last written."""

    @property
    def fault_happened(self) -> bool:
        return self._fault_request is not None

    @property
    def at_eviction(self) -> bool:
        """Whether the fault hit an eviction. If the pod is gone anyway, the fault has no effect."""
        return self._fault_request is not None and self._fault_request.path.endswith("/eviction")

    @property
    def late_writes(self) -> list[str]:
        """Writes that were sent long after the last change of the cluster."""
        return [
            write
            for write, at in zip(self.writes, self.write_times, strict=True)
            if at > self._world.last_change_at + LATE_WRITE_S
        ]

    @property
    def fault(self) -> str:
        return self.point.fault if self.point else ""

    async def before_request(self, request: Request) -> None:
        if not is_reconcile_write(request):
            return
        number = len(self.writes)
        # A write that left before the lease expired is received one network delay later, which is allowed.
        if not self._world.is_leader and _now() > self._stalled_at + 1.5 * NETWORK_DELAY_S:
            self.violations.append(f"written without holding the lease: {request.method} {request.path}")
        if _is_status_write(request):
            self.violations += _false_accusations(self._world.store, request)
        self.before_write(number, request)
        self.writes.append(f"{request.method} {request.path}")
        self.write_times.append(_now())
        self.steps.append(self.step)
        self._in_flight[id(request)] = number
        self.world_marks.append([self._mark()])
        if self.point and self.point.write == number and not self.fault_happened:
            self._fault_request = request
            await self._inject(request)

    def before_write(self, number: int, request: Request) -> None:
        """Called before each write is numbered. Overridden to fork the process there."""

    async def after_request(self, request: Request, refused: ApiError | None) -> None:
        if not is_reconcile_write(request):
            return
        self.world_marks[self._in_flight[id(request)]].append(self._mark())
        self._check_status_write(request, refused)
        if self._is_fault_at(request, faults.CRASH_RESPONSE_LOST):
            await self._kill()
        if self._is_fault_at(request, *faults.DONE_UNANSWERED):
            # The events are held back as well, so that the operator cannot see that the write was executed.
            self._hold_back_events()
            raise (
                connection_lost(request)
                if self.fault == faults.RESPONSE_LOST
                else parse_error(TIMEOUT_REFUSAL.body, about=request.about)
            )

    def response_received(self, request: Request) -> None:
        if not is_reconcile_write(request):
            return
        self.world_marks[self._in_flight.pop(id(request))].append(self._mark())
        if self._is_fault_at(request, faults.CRASH_AFTER):
            # Killed by the event loop: the operator still runs on the response until it first waits.
            self._killed_at = _now()
            asyncio.get_running_loop().call_soon(self._world.kill)

    def _check_status_write(self, request: Request, refused: ApiError | None) -> None:
        """Reports a status that conflicts with the operator's own last one: it was planned from an outdated cache."""
        if not _is_status_write(request):
            return
        at = parse_path(request.path)
        stored = self._world.store.get(at.resource, at.name, at.namespace)
        revision = stored["metadata"]["resourceVersion"] if stored else ""
        if refused is None:
            self._status_revisions[request.path] = revision
        elif (
            isinstance(refused, Conflict)
            and self._status_revisions.get(request.path) == revision
            and self.fault not in faults.DONE_UNANSWERED
        ):
            self.violations.append(f"status planned from a cache older than its own last write: {request.path}")

    async def watch_delay_s(self, request: Request) -> float:
        if (
            self.fault in faults.KILLING_FAULTS
            and self.fault_happened
            and _plural(request) in PLANNING_INPUTS
            and _now() < self._killed_at + LATE_WRITE_S
        ):
            return PARTIAL_SYNC_S
        left = self._silent_until - _now()
        if left <= 0 or self._fault_request is None or self.fault == faults.EVENTS_TWICE:
            return WATCH_DELAY_S
        if self.fault == faults.HISTORY_COMPACTED:
            return left
        same_kind = _plural(request) == _plural(self._fault_request)
        return WATCH_DELAY_S if same_kind == (self.fault == faults.OTHER_EVENTS_LATE) else left

    def repeats_event(self, request: Request) -> bool:
        return self.fault == faults.EVENTS_TWICE and _now() < self._silent_until

    async def _inject(self, request: Request) -> None:
        """Injects the faults that happen before the server receives the request."""
        match self.fault:
            case faults.CRASH_BEFORE:
                await self._kill()
            case faults.DELAYED_WRITE:
                asyncio.get_running_loop().call_later(EVENT_DELAY_S, self._execute_delayed, request)
                await self._kill()
            case faults.REQUEST_LOST:
                raise connection_lost(request)
            case faults.STALLED_BEFORE_SEND | faults.STALLED_AFTER_SEND:
                self._stall_machine()
                await asyncio.sleep(
                    2 * RARE_RENEWALS.renew_interval_s if self.fault == faults.STALLED_BEFORE_SEND else 0
                )
            case faults.NEXT_STEP_EARLY if self.next_step:
                self.hurried_step = self._world.run_beside(_await(self.next_step()))
            case fault if fault in REFUSALS:
                raise parse_error(REFUSALS[fault].body, about=request.about)
            case fault if fault in faults.CACHE_FAULTS:
                self._hold_back_events()
            case _:
                self._change_cluster(request)

    def _change_cluster(self, request: Request) -> None:
        """Makes the write meet another state than it was planned for."""
        match self.fault:
            case faults.WATCHES_CUT:
                self._world.server.cut_watches()
            case faults.CLOCK_AHEAD | faults.CLOCK_BACK:
                self._world.clock.set_offset(CLOCK_ERROR_S if self.fault == faults.CLOCK_AHEAD else -CLOCK_ERROR_S)
            case faults.NAME_TAKEN:
                self.foreign_writer = ForeignWriter(self._world.store)
                self.foreign_writer.replace_target(request)
            case faults.FOREIGN_EDIT:
                edit_as_foreign_writer(self._world.store, request)

    def _stall_machine(self) -> None:
        self._stalled_at = _now()
        self._world.clock.frozen_s += RARE_RENEWALS.duration_s
        # The operator notices at its next renewal, and cancels everything that is in flight then.
        self._world.last_change_at = _now() + RARE_RENEWALS.renew_interval_s
        asyncio.get_running_loop().call_later(RARE_RENEWALS.renew_interval_s, self._world.history.reset)

    def _execute_delayed(self, request: Request) -> None:
        self._world.history.others_acted()
        with suppress(ApiRefusal):
            self._world.server.answer(request)

    def _hold_back_events(self) -> None:
        self._silent_until = _now() + EVENT_DELAY_S
        self._world.last_change_at = self._silent_until
        loop = asyncio.get_running_loop()
        loop.call_later(EVENT_DELAY_S, self._world.history.reset)
        if self.fault == faults.HISTORY_COMPACTED:
            loop.call_later(EVENT_DELAY_S, self._compact_history)

    def _compact_history(self) -> None:
        self._world.store.compact()
        self._world.server.cut_watches()

    def _is_fault_at(self, request: Request, *some_faults: str) -> bool:
        return request is self._fault_request and self.fault in some_faults

    async def _kill(self) -> None:
        """Kills the operator; never returns, as the calling task is part of it."""
        self._killed_at = _now()
        self._world.kill()
        await asyncio.Event().wait()

    def _mark(self) -> WorldMark:
        return WorldMark(self._world.change_count, _now())

    @property
    def _world(self) -> SimulatedCluster:
        assert self.cluster
        return self.cluster


def is_reconcile_write(request: Request) -> bool:
    """Whether a request changes what the operator reconciles. Leases and events are left out."""
    parts = request.path.split("/")
    return request.method != "GET" and not {LEASES.plural, EVENTS.plural} & set(parts)


def _plural(request: Request) -> str:
    return parse_path(request.path).resource.plural


def _false_accusations(store: ObjectStore, request: Request) -> Iterator[str]:
    """Claims in a status that an object belongs to another owner, although it is the workload's own."""
    at = parse_path(request.path)
    owner = store.get(at.resource, at.name, at.namespace)
    for condition in msgspec.json.decode(request.body)["status"].get("conditions", ()):
        match_ = _NAME_TAKEN_MESSAGE.match(condition["message"]) if condition["reason"] == NOT_OWNED.code else None
        kind, name = match_.groups() if match_ else ("", "")
        native = store.get(ALL_NATIVES[kind], name, at.namespace) if match_ else None
        if owner and native and controller_uid(native) == owner["metadata"]["uid"]:
            yield f"{kind}/{name} is its own, and reported as another owner's by {request.path}"


def _is_status_write(request: Request) -> bool:
    return request.path.endswith("/status") and GROUP in request.path


async def _await(work: Awaitable[None]) -> None:
    await work


def _now() -> float:
    return asyncio.get_running_loop().time()
