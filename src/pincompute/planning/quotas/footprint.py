"""What a workload holds of its project's quota: the requests of all pods that it may have at one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.names import PRIORITY
from pincompute.api.status import SUCCEEDED, condition
from pincompute.api.workload import Workload
from pincompute.objects.content import Object
from pincompute.objects.numbers import share_of
from pincompute.objects.quantity import amount
from pincompute.planning.people.preview import settled
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import GPU
from pincompute.planning.snapshot import Snapshot


class Place(NamedTuple):
    """Where a workload lives."""

    project: str
    kind: str
    name: str

    @classmethod
    def of(cls, workload: Workload) -> Place:
        return cls(workload.metadata.namespace, workload.kind, workload.metadata.name)


class Footprint(NamedTuple):
    """Whole numbers, so that sums are exact."""

    tier: str = ""
    cpu: int = 0
    """Thousandths of a processor."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    pods: int = 0
    bytes: int = 0
    """Of all that it becomes, as it is written into a cluster."""


COUNTED = ("cpu", "memory", "gpus", "pods", "bytes")
NOTHING = Footprint()
MOST = 2**53
"""More than there is of anything: a database can still add up what people write."""


def footprint(planned: Plan, nodes: int = 1) -> Footprint:
    """As its natives say it, with what is injected and with the copies that a rollout has beside the others; what runs
    once on a node is counted for so many nodes."""
    counted = [each for native in planned.wanted for each in _copies(native, nodes)]
    tiers = [_tier(template) for _, template in counted]
    asked = [(count, _requests(template["spec"])) for count, template in counted]
    return Footprint(
        tier=tiers[0] if tiers else "",
        cpu=_whole(sum(count * each["cpu"] for count, each in asked) * 1000),
        memory=_whole(sum(count * each["memory"] for count, each in asked)),
        gpus=_whole(sum(count * each[GPU] for count, each in asked)),
        pods=sum(count for count, _ in asked),
        bytes=sum(len(msgspec.json.encode(native)) for native in planned.wanted),
    )


def held(snapshot: Snapshot) -> Footprint:
    """By a workload as it stands: what has ended holds nothing."""
    owner: Workload = snapshot.owner
    return NOTHING if ended(owner) else footprint(settled(snapshot), max(1, nodes(owner)))


def ended(owner: Workload) -> bool:
    """It was to come to an end, and did, be it well or not; of what it is by now, and not of what it was before."""
    goal = condition(owner.status.conditions, owner.GOAL)
    known = owner.status.observed_generation >= owner.metadata.generation
    return owner.GOAL == SUCCEEDED and known and goal is not None and goal.status != "Unknown"


def nodes(owner: Workload) -> int:
    """On how many it runs, of what runs once on each; 0 where that is not known."""
    progress = owner.status.progress
    return progress.wanted if progress and isinstance(owner, PinterestDaemon) else 0


def _copies(native: Object, nodes: int) -> Iterator[tuple[int, Object]]:
    """How many pods at most, and of which template."""
    spec = native.get("spec", {})
    match native["kind"]:
        case "Deployment":
            replicas = spec["replicas"]
            surge = share_of(spec["strategy"]["rollingUpdate"]["maxSurge"], replicas, up=True) if replicas else 0
            yield replicas + surge, spec["template"]
        case "StatefulSet":
            yield spec["replicas"], spec["template"]
        case "DaemonSet":
            yield nodes, spec["template"]
        case "Job":
            yield _side_by_side(spec), spec["template"]
        case "CronJob":
            job = spec["jobTemplate"]["spec"]
            yield _side_by_side(job), job["template"]
        case "PyTorchJob" | "TFJob":
            replicas = next(each for name, each in spec.items() if name.endswith("ReplicaSpecs"))
            for each in replicas.values():
                yield each["replicas"], each["template"]


def _side_by_side(job: Object) -> int:
    return min(int(job.get("parallelism", 1)), int(job.get("completions", 1)))


def _tier(template: Object) -> str:
    return str(template["spec"]["priorityClassName"]).removeprefix(PRIORITY)


def _requests(pod: Object) -> dict[str, Fraction]:
    """As Kubernetes counts a pod: what runs beside each other is added, and what runs before may need more alone."""
    return {resource: _request(pod, resource) for resource in ("cpu", "memory", GPU)}


def _request(pod: Object, resource: str) -> Fraction:
    beside, most = Fraction(0), Fraction(0)
    for each in pod.get("initContainers", ()):
        asked = _asked(each, resource)
        if each.get("restartPolicy") == "Always":
            beside += asked
            most = max(most, beside)
        else:
            most = max(most, beside + asked)
    running = beside + sum((_asked(each, resource) for each in pod["containers"]), Fraction(0))
    overhead = amount(pod.get("overhead", {}).get(resource, 0))
    return max(most, running) + overhead


def _asked(container: Object, resource: str) -> Fraction:
    """What is not asked for is what it may have at most."""
    resources = container.get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    return amount(requests.get(resource, limits.get(resource, 0)))


def _whole(asked: Fraction | int) -> int:
    return min(ceil(asked), MOST)


def together(footprints: Iterable[Footprint]) -> Footprint:
    """As much as any of these, thing by thing: one of them will stand, and until it does, each of them may."""
    all_ = tuple(footprints)
    if not all_:
        return NOTHING
    return Footprint(all_[0].tier, *(max(getattr(each, name) for each in all_) for name in COUNTED))


def total(footprints: Iterable[Footprint]) -> Footprint:
    """All of these at one time."""
    all_ = tuple(footprints)
    return Footprint("", *(sum(getattr(each, name) for each in all_) for name in COUNTED))
