"""Resource use of workloads, from the summaries of kubelets. A node is believed about its own pods only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.usage import ResourceUsage, WorkloadUsage
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.observed_pods import ContainerStatus

NOT_MEASURED = "not measured yet: a container is measured from some seconds after its start"
_NANOCORES_PER_MILLICORE = 10**6
_MAX_NANOCORES = 10**15
"""A million cores. Kubelets report garbage for a moment when a counter overflows; that must not spoil a sum."""
_MAX_BYTES = 2**50
_MAX_TOTAL = 2**63
_MAX_NAMED_NODES = 2


class UsageStatsInvalid(Exception):  # noqa: N818  (named for what it is about)
    """The response of a kubelet that is no summary."""


class ContainerUse(NamedTuple):
    """Use of one container; None where the kubelet reports no valid figure."""

    nanocores: int | None = None
    memory_bytes: int | None = None


class PodTotals(NamedTuple):
    """What a pod has used since its start, its parts included, and the disk that it uses; None if it is unknown."""

    cpu_nanoseconds: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    disk_bytes: int | None = None


class MeasuredPod(NamedTuple):
    namespace: str
    containers: Mapping[str, ContainerUse]
    totals: PodTotals = PodTotals()


class NodeStats(NamedTuple):
    """What a node reports of its pods, by uid, or why it reports nothing."""

    pods: Mapping[str, MeasuredPod] = {}
    problem: str = ""


class PodUse(NamedTuple):
    """Use of the own containers of one pod; None if it is unknown."""

    millicores: int | None = None
    memory_bytes: int | None = None


class _CpuStats(LenientStruct, frozen=True):
    usage_nano_cores: Any = None
    usage_core_nano_seconds: Any = None


class _MemoryStats(LenientStruct, frozen=True):
    working_set_bytes: Any = None


class _ContainerStats(LenientStruct, frozen=True):
    name: str = ""
    cpu: _CpuStats | None = None
    memory: _MemoryStats | None = None


class _PodReference(LenientStruct, frozen=True):
    namespace: str = ""
    uid: str = ""


class _NetworkStats(LenientStruct, frozen=True):
    rx_bytes: Any = None
    tx_bytes: Any = None


class _DiskStats(LenientStruct, frozen=True):
    used_bytes: Any = None


class _PodStats(LenientStruct, frozen=True):
    pod_ref: _PodReference = _PodReference()
    containers: list[_ContainerStats] | None = None
    cpu: _CpuStats | None = None
    network: _NetworkStats | None = None
    disk: _DiskStats | None = msgspec.field(name="ephemeral-storage", default=None)


class _Summary(LenientStruct, frozen=True):
    pods: list[_PodStats] | None


_summary_decoder = msgspec.json.Decoder(_Summary)


class _Resources(LenientStruct, frozen=True):
    requests: dict[str, int | str] = {}
    limits: dict[str, int | str] = {}

    def allotted(self, resource: str) -> Fraction:
        return parse_quantity(self.limits.get(resource, self.requests.get(resource, 0)))


class UsageContainer(LenientStruct, frozen=True):
    name: str
    resources: _Resources = _Resources()


class UsagePodSpec(LenientStruct, frozen=True):
    node_name: str = ""
    containers: list[UsageContainer] = []


class UsagePodStatus(LenientStruct, frozen=True):
    phase: str = ""
    container_statuses: list[ContainerStatus] = []


class UsagePod(LenientStruct, frozen=True):
    """The fields of a pod by which its use is found and judged."""

    metadata: Metadata
    spec: UsagePodSpec = UsagePodSpec()
    status: UsagePodStatus = UsagePodStatus()

    @property
    def is_running(self) -> bool:
        return self.status.phase == "Running" and bool(self.spec.node_name)

    @property
    def running_containers(self) -> list[str]:
        """Names of its own containers that run. The others use nothing, and no kubelet reports them."""
        own = {each.name for each in self.spec.containers}
        return [each.name for each in self.status.container_statuses if each.name in own and each.state.running]

    @property
    def restarts(self) -> int:
        return sum(each.restart_count for each in self.status.container_statuses)

    def allotted(self, resource: str) -> Fraction:
        return sum((each.resources.allotted(resource) for each in self.spec.containers), Fraction(0))

    def requested(self, resource: str) -> Fraction:
        requests = (each.resources.requests.get(resource, 0) for each in self.spec.containers)
        return sum(map(parse_quantity, requests), Fraction(0))

    def limit(self, resource: str) -> Fraction | None:
        limits = [each.resources.limits.get(resource) for each in self.spec.containers]
        known = [parse_quantity(each) for each in limits if each is not None]
        return sum(known, Fraction(0)) if len(known) == len(limits) else None


def parse_stats(body: bytes) -> NodeStats:
    """The pods in a kubelet's summary. Raises UsageStatsInvalid."""
    try:
        summary = _summary_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageStatsInvalid from error
    return NodeStats(
        {
            pod.pod_ref.uid: MeasuredPod(
                pod.pod_ref.namespace, {each.name: _container_use(each) for each in pod.containers or ()}, _totals(pod)
            )
            for pod in summary.pods or ()
        }
    )


def use_of_pod(pod: UsagePod, stats: Mapping[str, NodeStats]) -> PodUse:
    """Use of a pod by the stats of its own node."""
    found = _measured(pod, stats)
    if found is None:
        return PodUse()
    uses = [found.containers.get(name, ContainerUse()) for name in pod.running_containers]
    nanocores = _sum_of_known(each.nanocores for each in uses)
    millicores = None if nanocores is None else round(Fraction(nanocores, _NANOCORES_PER_MILLICORE))
    return PodUse(millicores, _sum_of_known(each.memory_bytes for each in uses))


def totals_of_pod(pod: UsagePod, stats: Mapping[str, NodeStats]) -> PodTotals:
    """Totals of a pod by the stats of its own node."""
    found = _measured(pod, stats)
    return found.totals if found else PodTotals()


def _measured(pod: UsagePod, stats: Mapping[str, NodeStats]) -> MeasuredPod | None:
    """The report of the pod's own node; what other nodes report of it is ignored."""
    found = stats.get(pod.spec.node_name, NodeStats()).pods.get(pod.metadata.uid)
    return found if found and found.namespace == pod.metadata.namespace and pod.is_running else None


def workload_usage(name: str, pods: Sequence[UsagePod], stats: Mapping[str, NodeStats]) -> WorkloadUsage:
    """Use of a workload with these pods, by the stats of their nodes."""
    running = [each for each in pods if each.is_running]
    uses = {each.metadata.uid: use_of_pod(each, stats) for each in running}
    cpu = {uid: each.millicores for uid, each in uses.items()}
    memory = {uid: each.memory_bytes for uid, each in uses.items()}
    nodes = {each.spec.node_name for each in running if None in uses[each.metadata.uid]}
    return WorkloadUsage(
        name=name,
        running=len(running),
        cpu=_resource_usage(running, cpu, "cpu", scale=1000),
        memory=_resource_usage(running, memory, "memory", scale=1),
        restarts=sum(each.restarts for each in pods),
        note=_unknown_note(nodes, stats),
    )


def _container_use(container: _ContainerStats) -> ContainerUse:
    return ContainerUse(
        _valid_figure(container.cpu and container.cpu.usage_nano_cores, _MAX_NANOCORES),
        _valid_figure(container.memory and container.memory.working_set_bytes, _MAX_BYTES),
    )


def _totals(pod: _PodStats) -> PodTotals:
    return PodTotals(
        _valid_figure(pod.cpu and pod.cpu.usage_core_nano_seconds, _MAX_TOTAL),
        _valid_figure(pod.network and pod.network.rx_bytes, _MAX_TOTAL),
        _valid_figure(pod.network and pod.network.tx_bytes, _MAX_TOTAL),
        _valid_figure(pod.disk and pod.disk.used_bytes, _MAX_BYTES),
    )


def _valid_figure(value: Any, limit: int) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= limit else None


def _sum_of_known(figures: Iterable[int | None]) -> int | None:
    """The sum, or None if a part of it is unknown."""
    parts = list(figures)
    known = [each for each in parts if each is not None]
    return sum(known) if len(known) == len(parts) else None


def _resource_usage(
    running: Sequence[UsagePod], use: Mapping[str, int | None], resource: str, *, scale: int
) -> ResourceUsage:
    """Use and allotment of the same replicas: with others the use would seem smaller than it is."""
    known = [each for each in running if use[each.metadata.uid] is not None]
    counted = known or running
    limits = [each.limit(resource) for each in counted]
    known_limits = [each for each in limits if each is not None]
    is_limited = bool(limits) and len(known_limits) == len(limits)
    return ResourceUsage(
        used=sum(filter(None, use.values())) if known else None,
        allotted=round(sum((each.allotted(resource) for each in counted), Fraction(0)) * scale),
        requested=round(sum((each.requested(resource) for each in counted), Fraction(0)) * scale),
        limit=round(sum(known_limits, Fraction(0)) * scale) if is_limited else None,
        unknown=len(running) - len(known),
    )


def _unknown_note(nodes: Iterable[str], stats: Mapping[str, NodeStats]) -> str:
    """The most frequent problem of the nodes whose pods are unknown, and some of these nodes."""
    by_problem: dict[str, list[str]] = {}
    for node in sorted(nodes):
        by_problem.setdefault(stats.get(node, NodeStats()).problem or NOT_MEASURED, []).append(node)
    if not by_problem:
        return ""
    problem, affected = max(by_problem.items(), key=lambda each: len(each[1]))
    named = ", ".join(affected[:_MAX_NAMED_NODES])
    more = f" and {len(affected) - _MAX_NAMED_NODES} more" if len(affected) > _MAX_NAMED_NODES else ""
    return f"{problem} ({named}{more})"
