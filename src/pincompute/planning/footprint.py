"""Quota footprint of a workload: the requests of all pods that it may have at the same time, and its objects.

The footprint is computed from the plan, and therefore includes injected sidecars and the surge of a rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import msgspec

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.names import PRIORITY_CLASS_PREFIX
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.number_sets import parse_numbers, scaled_value
from pincompute.objects.quantity import parse_quantity
from pincompute.objects.schedule_times import shortest_interval_s
from pincompute.planning.object_counts import count_objects
from pincompute.planning.object_quota import OBJECT_RESOURCES
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import GPU_RESOURCE
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import has_ended
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
    """Amounts of one tier and of the objects, in whole units so that sums are exact."""

    tier: str = ""
    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    pods: int = 0
    bytes: int = 0
    """Total size of the workload's Kubernetes objects as JSON."""
    # Of all tiers together:
    storage: int = 0
    """Bytes of its volumes."""
    config_maps: int = 0
    services: int = 0
    service_accounts: int = 0
    claims: int = 0
    jobs: int = 0
    cron_jobs: int = 0
    ingresses: int = 0


TIER_RESOURCES = ("cpu", "memory", "gpus", "pods", "bytes")
"""Limited for each tier. `OBJECT_RESOURCES` are limited for the whole project."""
COUNTED_RESOURCES = (*TIER_RESOURCES, *OBJECT_RESOURCES)
EMPTY_FOOTPRINT = Footprint()
_NOTHING_OF_A_TIER: dict[str, Any] = {name: Footprint._field_defaults[name] for name in ("tier", *TIER_RESOURCES)}
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
    revision: int = 0
    content: str = ""
    """Of the newest revision: the records of earlier ones are retained."""
    retained_jobs: int = 0
    """Jobs of the attempts of a batch, finished ones included."""

    @classmethod
    def of(cls, owner: Workload) -> ObservedCounts:
        active_runs = len(owner.status.running) if isinstance(owner, PinterestCronJob) else 0
        nodes, revision, content = max(1, daemon_node_count(owner)), owner.status.revision, owner.status.content
        return cls(nodes, active_runs, revision, content, _job_count(owner))


def footprint_of(planned: Plan, observed: ObservedCounts = ObservedCounts()) -> Footprint:  # noqa: B008  (immutable)
    """The footprint of the planned objects."""
    templates = [each for native in planned.wanted for each in _pod_counts(native, observed)]
    tiers = [_tier_of(template) for _, template in templates]
    requests = [(count, _pod_requests(template["spec"])) for count, template in templates]
    objects = dict(count_objects(planned.wanted, templates, observed.revision, observed.content))
    runs = sum(
        _concurrent_runs(native["spec"], observed.active_runs)
        for native in planned.wanted
        if native["kind"] == "CronJob"
    )
    objects["jobs"] = max(objects["jobs"] + runs, Fraction(observed.retained_jobs))
    return Footprint(
        tier=tiers[0] if tiers else "",
        cpu=_bounded_amount(sum(count * each["cpu"] for count, each in requests) * 1000),
        memory=_bounded_amount(sum(count * each["memory"] for count, each in requests)),
        gpus=_bounded_amount(sum(count * each[GPU_RESOURCE] for count, each in requests)),
        pods=sum(count for count, _ in requests),
        bytes=sum(len(msgspec.json.encode(native)) for native in planned.wanted),
        **{resource: _bounded_amount(amount) for resource, amount in objects.items()},
    )


def rollout_surge(planned: Plan) -> int:
    """How many pods of the footprint exist only during a rollout."""
    return sum(_surge(native["spec"]) for native in planned.wanted if native["kind"] == "Deployment")


def current_footprint(snapshot: Snapshot) -> Footprint:
    """The footprint of an existing workload. After its work has ended, only objects and storage are left."""
    owner: Workload = snapshot.owner
    found = footprint_of(converged_plan(snapshot), ObservedCounts.of(owner))
    return objects_of(found) if has_ended(owner) else found


def objects_of(footprint: Footprint) -> Footprint:
    """The amounts that no tier limits."""
    return footprint._replace(**_NOTHING_OF_A_TIER)


def _job_count(owner: Workload) -> int:
    if not isinstance(owner, PinterestJobSet):
        return 0
    per_task = owner.spec.has_retained_claims
    return sum(len(parse_numbers(each.tasks)) if per_task else 1 for each in owner.status.attempts)


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
