"""Quota footprint of a workload: the requests of all pods that it may have at the same time.

The footprint is computed from the plan, and therefore includes injected sidecars and the surge of a rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.names import PRIORITY_CLASS_PREFIX
from pincompute.api.status import SUCCEEDED, find_condition
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.number_sets import scaled_value
from pincompute.objects.quantity import parse_quantity
from pincompute.objects.schedule_times import shortest_interval_s
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import GPU_RESOURCE
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import converged_plan


class WorkloadKey(NamedTuple):
    """Identity of a workload."""

    project: str
    kind: str
    name: str

    @classmethod
    def of(cls, workload: Workload) -> WorkloadKey:
        return cls(workload.metadata.namespace, workload.kind, workload.metadata.name)


class Footprint(NamedTuple):
    """Amounts of one tier, in whole units so that sums are exact."""

    tier: str = ""
    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    pods: int = 0
    bytes: int = 0
    """Total size of the workload's Kubernetes objects as JSON."""


COUNTED_RESOURCES = ("cpu", "memory", "gpus", "pods", "bytes")
EMPTY_FOOTPRINT = Footprint()
_TERMINATION_S = 30
"""Time for which the pods of a run that exceeded its deadline still count: the default grace period of a pod."""
MAX_AMOUNT = 2**53
"""Upper bound of an amount: sums of absurd requests still fit into an integer column of the database."""


class ObservedCounts(NamedTuple):
    """Numbers that a plan does not know, from the status of the workload."""

    nodes: int = 1
    """Nodes on which a daemon runs, each with one of its pods."""
    active_runs: int = 0
    """Active runs of a periodic job."""

    @classmethod
    def of(cls, owner: Workload) -> ObservedCounts:
        active_runs = len(owner.status.running) if isinstance(owner, PinterestCronJob) else 0
        return cls(max(1, daemon_node_count(owner)), active_runs)


def footprint_of(planned: Plan, observed: ObservedCounts = ObservedCounts()) -> Footprint:  # noqa: B008  (immutable)
    """The footprint of the planned objects."""
    templates = [each for native in planned.wanted for each in _pod_counts(native, observed)]
    tiers = [_tier_of(template) for _, template in templates]
    requests = [(count, _pod_requests(template["spec"])) for count, template in templates]
    return Footprint(
        tier=tiers[0] if tiers else "",
        cpu=_bounded_amount(sum(count * each["cpu"] for count, each in requests) * 1000),
        memory=_bounded_amount(sum(count * each["memory"] for count, each in requests)),
        gpus=_bounded_amount(sum(count * each[GPU_RESOURCE] for count, each in requests)),
        pods=sum(count for count, _ in requests),
        bytes=sum(len(msgspec.json.encode(native)) for native in planned.wanted),
    )


def rollout_surge(planned: Plan) -> int:
    """How many pods of the footprint exist only during a rollout."""
    return sum(_surge(native["spec"]) for native in planned.wanted if native["kind"] == "Deployment")


def current_footprint(snapshot: Snapshot) -> Footprint:
    """The footprint of an existing workload; empty after its work has ended."""
    owner: Workload = snapshot.owner
    if has_ended(owner):
        return EMPTY_FOOTPRINT
    return footprint_of(converged_plan(snapshot), ObservedCounts.of(owner))


def has_ended(owner: Workload) -> bool:
    """True if work that ends has succeeded or failed in its present generation."""
    goal = find_condition(owner.status.conditions, owner.GOAL)
    is_current = owner.status.observed_generation >= owner.metadata.generation
    return owner.GOAL == SUCCEEDED and is_current and goal is not None and goal.status != "Unknown"


def daemon_node_count(owner: Workload) -> int:
    """Number of nodes on which a daemon runs; 0 for other kinds, and while it is unknown."""
    progress = owner.status.progress
    return progress.wanted if progress and isinstance(owner, PinterestDaemon) else 0


def _pod_counts(native: Object, observed: ObservedCounts) -> Iterator[tuple[int, Object]]:
    """The maximum number of pods for each pod template of the object."""
    spec = native.get("spec", {})
    match native["kind"]:
        case "Deployment":
            yield spec["replicas"] + _surge(spec), spec["template"]
        case "StatefulSet":
            yield spec["replicas"], spec["template"]
        case "DaemonSet":
            yield observed.nodes, spec["template"]
        case "Job":
            yield _job_parallelism(spec), spec["template"]
        case "CronJob":
            job = spec["jobTemplate"]["spec"]
            yield _job_parallelism(job) * _concurrent_runs(spec, observed.active_runs), job["template"]
        case "PyTorchJob" | "TFJob":
            roles = next(value for name, value in spec.items() if name.endswith("ReplicaSpecs"))
            for role in roles.values():
                yield role["replicas"], role["template"]


def _surge(deployment: Object) -> int:
    replicas = deployment["replicas"]
    return scaled_value(deployment["strategy"]["rollingUpdate"]["maxSurge"], replicas, up=True) if replicas else 0


def _concurrent_runs(cron_job: Object, active: int) -> int:
    """Runs of a CronJob that may exist at once: the active ones, and all that may start until they end.

    Without a deadline nothing bounds the runs that overlap; then the active ones and the next one are counted.
    """
    if cron_job["concurrencyPolicy"] != "Allow":
        return max(1, active)
    deadline_s = cron_job["jobTemplate"]["spec"].get("activeDeadlineSeconds")
    if deadline_s is None:
        return active + 1
    interval_s = shortest_interval_s(cron_job["schedule"])
    return max(1, active, ceil((deadline_s + _TERMINATION_S) / interval_s) if interval_s else 1)


def _job_parallelism(job: Object) -> int:
    return min(int(job.get("parallelism", 1)), int(job.get("completions", 1)))


def _tier_of(template: Object) -> str:
    return str(template["spec"]["priorityClassName"]).removeprefix(PRIORITY_CLASS_PREFIX)


def _pod_requests(pod: Object) -> dict[str, Fraction]:
    return {resource: _effective_request(pod, resource) for resource in ("cpu", "memory", GPU_RESOURCE)}


def _effective_request(pod: Object, resource: str) -> Fraction:
    """The request as Kubernetes computes it.

    Containers and sidecars that run together are added. An init container runs before them, together with the sidecars
    that are started already, and counts only if it needs more than that.
    """
    sidecars, largest = Fraction(0), Fraction(0)
    for container in pod.get("initContainers", ()):
        requested = _container_request(container, resource)
        if container.get("restartPolicy") == "Always":
            sidecars += requested
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + requested)
    running = sidecars + sum((_container_request(each, resource) for each in pod["containers"]), Fraction(0))
    overhead = parse_quantity(pod.get("overhead", {}).get(resource, 0))
    return max(largest, running) + overhead


def _container_request(container: Object, resource: str) -> Fraction:
    """The request; Kubernetes takes the limit where no request is set."""
    resources = container.get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    return parse_quantity(requests.get(resource, limits.get(resource, 0)))


def _bounded_amount(amount: Fraction | int) -> int:
    return min(ceil(amount), MAX_AMOUNT)


def largest_footprint(footprints: Iterable[Footprint]) -> Footprint:
    """The maximum of each resource: only one of the footprints will remain, but any of them may."""
    known = tuple(footprints)
    if not known:
        return EMPTY_FOOTPRINT
    return Footprint(known[0].tier, *(max(getattr(each, name) for each in known) for name in COUNTED_RESOURCES))


def total_footprint(footprints: Iterable[Footprint]) -> Footprint:
    """The sum of each resource."""
    known = tuple(footprints)
    return Footprint("", *(sum(getattr(each, name) for each in known) for name in COUNTED_RESOURCES))
