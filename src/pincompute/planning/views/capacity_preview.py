"""Preview of capacity: how many more replicas of a planned workload the nodes have room for now.

Shown before a user confirms a change. It is an estimate: the scheduler considers more than requests, labels and taints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.objects.content import Object
from pincompute.planning.diagnosis.capacity import PodRequirements
from pincompute.planning.diagnosis.free_capacity import (
    MAX_COUNTED_NODES,
    ClusterCapacity,
    count_fitting_replicas,
    explain_unschedulable,
)
from pincompute.planning.pods.templates import pod_templates


class PlannedPods(NamedTuple):
    """Pods of one planned object, by their template."""

    native: str
    pod: PodRequirements


def planned_pods(natives: Iterable[Object]) -> list[PlannedPods]:
    """One entry for each object that creates replicas. Daemons are left out: they run on every matching node anyway."""
    return [
        PlannedPods(
            planned.key, msgspec.convert({"metadata": {"name": ""}, "spec": planned.template["spec"]}, PodRequirements)
        )
        for planned in pod_templates(natives, 0)
        if planned.replicas
    ]


def describe_free_capacity(planned: Sequence[PlannedPods], capacity: ClusterCapacity) -> Iterator[str]:
    """One line for each entry; none if the nodes are unknown, since the caller may not read them."""
    if not capacity.nodes:
        return
    for pods in planned:
        of = f" of {pods.native}" if len(planned) > 1 else ""
        fitting = count_fitting_replicas(pods.pod, capacity)
        if fitting.replicas:
            more = f"{fitting.replicas:,} more {'replica' if fitting.replicas == 1 else 'replicas'}{of}"
            nodes = f"{fitting.nodes} {'node' if fitting.nodes == 1 else 'nodes'}"
            fit = "fits" if fitting.replicas == 1 else "fit"
            in_all = f"{more} {fit} on {nodes}"
            yield in_all if fitting.all_counted else f"at least {more} {fit} on the {MAX_COUNTED_NODES} largest nodes"
        else:
            why = (
                explain_unschedulable(pods.pod, capacity, "replica") or "no node has all that it requests free at once"
            )
            yield f"no more replicas{of} fit now: {why}"
