"""Watches of a cluster that keep the fleet current."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.project import Project
from pincompute.controller.pod_sharing import share_pod_values
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.insight.fleet import Fleet
from pincompute.insight.freshness import Freshness
from pincompute.insight.items import Node
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import NODES, PODS, Resource
from pincompute.planning.observed_pods import Pod


class FleetWatches:
    """One watch for each kind, for any number of readers."""

    def __init__(self, client: Client, fleet: Fleet) -> None:
        self._fleet = fleet
        watch: Callable[..., Informer[Any]] = partial(Informer, client)
        resource: Callable[[str], Resource] = CUSTOM_RESOURCES.__getitem__
        self._projects = watch(resource(Project.__name__), type=Project, on_change=fleet.on_project)
        self.workloads = {
            kind: watch(resource(kind), type=type_, on_change=fleet.on_workload) for kind, type_ in WORKLOADS.items()
        }
        self._members = [
            watch(PODS, type=Pod, labels=WORKLOAD_LABEL, on_change=fleet.on_pod, share=share_pod_values),
            watch(NODES, type=Node, on_change=fleet.on_node),
        ]

    @property
    def cached_objects(self) -> int:
        return sum(len(each.items) for each in (self._projects, *self.workloads.values(), *self._members))

    async def run(self, freshness: Freshness) -> None:
        """Watches until cancelled. An object is listed after those that its entries in the history refer to."""
        async with asyncio.TaskGroup() as group:
            for stage in ([self._projects], list(self.workloads.values()), self._members):
                for informer in stage:
                    group.create_task(informer.run())
                for informer in stage:
                    # A kind that this cluster does not serve, or that is refused, does not stop the others.
                    await informer.responded.wait()
            if not any(each.problem for each in self.workloads.values()):
                self._fleet.end_missing()
            freshness.synced.set()
