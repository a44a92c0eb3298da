"""Outages of the API server of minutes to an hour: the operator must send few requests meanwhile and recover soon
after."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from typing import NamedTuple

from structlog.testing import capture_logs

from pincompute.api.names import API_VERSION
from pincompute.kube.errors import Unreachable, parse_error
from pincompute.kube.lease import LeaseTimings
from pincompute.kube.request import Request
from pincompute.kube.resource import DEPLOYMENTS, PODS, STATEFUL_SETS, Object
from pincompute.operator.health import health_report, liveness_failures
from simulation.api_errors import ApiRefusal
from simulation.clock import run_in_virtual_time
from simulation.cluster import SimulatedCluster
from simulation.fault_injection import is_reconcile_write
from simulation.recorder import StateRecorder, StepRecord, ignore_intermediate, record_differences
from simulation.transport import FaultHooks
from simulation.user import DEFAULT_PROJECT, SimulatedUser

(
    UNREACHABLE,
    PROXY_ERROR_PAGE,
    LOGIN_PAGE,
    TOO_MANY_REQUESTS,
    ROLES_UNREAD,
    STORAGE_FULL,
    WRITE_FORBIDDEN,
    READ_FORBIDDEN,
) = (
    "unreachable",
    "proxy-error-page",
    "login-page",
    "too-many-requests",
    "roles-unread",
    "storage-full",
    "write-forbidden",
    "read-forbidden",
)
OUTAGES = {
    UNREACHABLE: "connections are refused",
    PROXY_ERROR_PAGE: "a load balancer answers with an HTML error page",
    LOGIN_PAGE: "a proxy answers with a login page and status 200",
    TOO_MANY_REQUESTS: "the server throttles all requests",
    ROLES_UNREAD: "the server denies everything, as it does after a start until it has read its roles",
    STORAGE_FULL: "etcd has no space left",
    WRITE_FORBIDDEN: "writes of one kind are forbidden",
    READ_FORBIDDEN: "reads of one kind are forbidden",
}
FORBIDDEN_KIND = DEPLOYMENTS
"""The kind of the outages that affect only one."""
HTML_PAGE = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"
_REFUSALS = {
    TOO_MANY_REQUESTS: ApiRefusal(
        429, "TooManyRequests", "the server has received too many requests", {"retryAfterSeconds": 5}
    ),
    ROLES_UNREAD: ApiRefusal(403, "Forbidden", 'forbidden: User "pincompute-operator" cannot get resource "pods"'),
    STORAGE_FULL: ApiRefusal(500, "", "etcdserver: mvcc: database space exceeded"),
    WRITE_FORBIDDEN: ApiRefusal(403, "Forbidden", f"{FORBIDDEN_KIND.plural} is forbidden: user cannot patch resource"),
    READ_FORBIDDEN: ApiRefusal(403, "Forbidden", f"{FORBIDDEN_KIND.plural} is forbidden: user cannot list resource"),
}


class OutageFaults(FaultHooks):
    """Refuses requests while it is on, and counts all requests."""

    affects_lease = True

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.on = False
        self.request_times: list[float] = []
        self.writes: list[str] = []

    async def before_request(self, request: Request) -> None:
        self.request_times.append(asyncio.get_running_loop().time())
        if is_reconcile_write(request):
            self.writes.append(f"{request.method} {request.path}")
        if not self._is_affected(request):
            return
        if self.kind == UNREACHABLE:
            raise Unreachable("https://simulated", "connection refused", about=request.about, how="absent")
        if self.kind == PROXY_ERROR_PAGE:
            raise parse_error(HTML_PAGE, status=502, about=request.about)
        if self.kind in _REFUSALS:
            raise parse_error(_REFUSALS[self.kind].body, about=request.about)

    def foreign_response(self, request: Request) -> bytes | None:
        return HTML_PAGE if self._is_affected(request) and self.kind == LOGIN_PAGE else None

    def _is_affected(self, request: Request) -> bool:
        other_kind = self.kind in {WRITE_FORBIDDEN, READ_FORBIDDEN} and request.resource != FORBIDDEN_KIND.plural
        allowed_read = self.kind in {STORAGE_FULL, WRITE_FORBIDDEN} and request.safe
        return self.on and not other_kind and not allowed_read

    def max_per_minute(self, since: float, until: float) -> int:
        """The number of requests in the busiest minute."""
        found = Counter(int((each - since) // 60) for each in self.request_times if since <= each < until)
        return max(found.values(), default=0)


class OutageResult(NamedTuple):
    """Measurements of one outage."""

    max_requests_per_minute: int
    """Requests in the busiest minute of the outage, its first aside."""
    requests_first_minute_after: int
    """Requests in the minute after the outage."""
    recovery_s: float
    """Time from the end of the outage to the last change of the cluster."""
    other_kinds_progressed: bool
    """Whether objects of other kinds were reconciled during the outage."""
    health_report: str
    """The operator's health report at the end of the outage."""
    violations: tuple[str, ...]


MAX_REQUESTS_PER_MINUTE = 300
"""More than two dozen watches and a lease are retried. In the first minute all of them break, which costs more."""
MAX_REQUESTS_FIRST_MINUTE = 300
"""Every watch is restarted and every key reconciled."""
MAX_RECOVERY_S = 15.0
"""Short, because the first renewal of the lease ends the backoff of all watches."""
MAX_RECOVERY_BY_RETRY_S = 75.0
"""Longer where nothing signals the end of the outage: the next retry of the pass finds out."""


def run_outage(kind: str, seconds: float) -> OutageResult:
    """Runs an outage of this length and checks its measurements against the limits."""
    with capture_logs():
        found, result = run_in_virtual_time(_run_with_outage(OutageFaults(kind), seconds))
    expected = ignore_intermediate(_undisturbed_record())
    violations = [*result.violations, *record_differences(expected, ignore_intermediate(found))]
    max_recovery_s = MAX_RECOVERY_BY_RETRY_S if kind == WRITE_FORBIDDEN else MAX_RECOVERY_S
    for name, value, limit in (
        ("requests in the busiest minute", result.max_requests_per_minute, MAX_REQUESTS_PER_MINUTE),
        ("requests in the minute after", result.requests_first_minute_after, MAX_REQUESTS_FIRST_MINUTE),
        ("seconds to recover", result.recovery_s, max_recovery_s),
    ):
        if value > limit:
            violations.append(f"{name}: {value:.0f}, limit {limit:.0f}")
    if result.other_kinds_progressed != (kind in {WRITE_FORBIDDEN, READ_FORBIDDEN}):
        violations.append(
            "another kind was reconciled" if result.other_kinds_progressed else "no other kind was reconciled"
        )
    return result._replace(violations=tuple(violations))


@cache
def _undisturbed_record() -> StepRecord:
    with capture_logs():
        return run_in_virtual_time(_run_with_outage(OutageFaults(UNREACHABLE), 0.0))[0]


async def _run_with_outage(outage: OutageFaults, seconds: float) -> tuple[StepRecord, OutageResult]:
    cluster = SimulatedCluster(outage, timings=LeaseTimings())
    recorder = StateRecorder(cluster.store)
    await cluster.begin()
    violations: list[str] = []
    try:
        await cluster.settle()
        await _create_workloads(cluster.user)
        await cluster.settle()
        outage.on = seconds > 0
        if outage.on:
            cluster.server.cut_watches()
        began = _now()
        await _edit_during_outage(cluster.user)
        await asyncio.sleep(max(0.0, seconds))
        progressed, report = _other_kind_progressed(cluster), _health_report(cluster)
        violations += [
            f"liveness fails, although a restart would not help: {each}" for each in _liveness_failures(cluster)
        ]
        outage.on, ended = False, _now()
        await cluster.settle()
        recovery_s = cluster.last_change_at - ended
        violations += cluster.unhealthy_workloads()
        violations += [] if cluster.process_starts == 1 else [f"the operator started {cluster.process_starts} times"]
        violations += await cluster.watch_calm(outage.writes)
        found = recorder.end(is_transient=True)
    finally:
        await cluster.end()
    busiest, first = outage.max_per_minute(began + 60, ended), outage.max_per_minute(ended, ended + 60)
    return found, OutageResult(busiest, first, recovery_s, progressed, report, tuple(violations))


def _service_document(name: str, image: str) -> Object:
    return _new_document("PinterestService", name, image=image, port=8080, replicas=2)


def _new_document(kind: str, name: str, **spec: object) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def _create_workloads(user: SimulatedUser) -> None:
    for name in ("web", "api", "search"):
        await user.write(_service_document(name, f"{name}:1"))
    await user.write(_new_document("PinterestStatefulSet", "db", image="db:1", port=5432, replicas=2))
    await user.write(_new_document("PinterestJobSet", "count", image="count:1", tasks=4, parallelism=2))


async def _edit_during_outage(user: SimulatedUser) -> None:
    """The edits of users during the outage, which the API server accepts from them."""
    await asyncio.sleep(5)
    await user.write(_service_document("web", "web:2"))
    await user.delete("PinterestService", "api")
    await user.write(_service_document("new", "new:1"))
    await user.delete(PODS, "db-0")
    await user.write(_new_document("PinterestStatefulSet", "db", image="db:2", port=5432, replicas=2))


def _other_kind_progressed(cluster: SimulatedCluster) -> bool:
    stateful_set = cluster.store.get(STATEFUL_SETS, "db", DEFAULT_PROJECT)
    return bool(stateful_set and stateful_set["spec"]["template"]["spec"]["containers"][0]["image"] == "db:2")


def _health_report(cluster: SimulatedCluster) -> str:
    return health_report(cluster.manager) if cluster.manager else ""


def _liveness_failures(cluster: SimulatedCluster) -> list[str]:
    return list(liveness_failures(cluster.manager)) if cluster.manager else []


def _now() -> float:
    return asyncio.get_running_loop().time()
