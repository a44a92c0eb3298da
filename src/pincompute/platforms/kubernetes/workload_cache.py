"""Watch cache of our resources, without their natives. The desk counts quota and lists workloads from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import WORKLOADS
from pincompute.api.project import Project
from pincompute.api.status import EXPIRED, find_condition
from pincompute.api.workload import Workload
from pincompute.controller.planning_context import PlanningContextCache
from pincompute.controller.resources import CUSTOM_RESOURCES, RECONCILED_KINDS
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.footprint import ObservedCounts, WorkloadKey
from pincompute.planning.hosts import HostVerdict
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import has_ended
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, PlanningInputs
from pincompute.platforms.kubernetes.cluster_reader import read_cluster


class WorkloadCache:
    """Answers from memory, and collects the workloads with a possibly changed quota footprint."""

    def __init__(self, client: Client) -> None:
        self.changed_keys: set[WorkloadKey] = set()
        """Collected since `take_changed` was last called."""
        self.changed_event = asyncio.Event()
        """Set while `changed_keys` is not empty."""
        self.context_version = 0
        """Increases with every change of a project, a runtime or a part: footprints computed before are outdated."""
        self._names: dict[tuple[str, str], dict[str, None]] = {}
        """Names by project and kind, in order of arrival: lists one project without a scan of all."""
        self._client = client
        self._context = PlanningContextCache()
        self._cluster = LOCAL_CLUSTER
        self._complete = False
        self._informers: dict[str, Informer[Any]] = {
            kind: Informer(client, CUSTOM_RESOURCES[kind], type=type_, on_change=self._on_event)
            for kind, type_ in RECONCILED_KINDS.items()
        }

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as watches:
            for informer in self._informers.values():
                watches.create_task(informer.run())

    async def wait_synced(self) -> None:
        """Returns when every kind was listed and the cluster facts were read."""
        for informer in self._informers.values():
            await informer.synced.wait()
        self._cluster = await read_cluster(self._client)
        self._complete = True

    def keys(self) -> Iterable[WorkloadKey]:
        return [WorkloadKey(project, kind, name) for kind in WORKLOADS for project, name in self._informers[kind].items]

    def find(self, key: WorkloadKey) -> Any:
        """The workload, or None."""
        return self._informers[key.kind].items.get((key.project, key.name))

    def in_project(self, project: str) -> list[Workload]:
        return [
            self.find(WorkloadKey(project, kind, name))
            for kind in WORKLOADS
            for name in self._names.get((project, kind), ())
        ]

    @property
    def is_live(self) -> bool:
        """Whether all watches are connected, so that changes arrive at once."""
        return all(self._informers[kind].watching for kind in WORKLOADS)

    async def wait_for(self, kind: str, predicate: Callable[[], bool]) -> None:
        """Waits until the predicate holds; it is evaluated after every change of this kind."""
        await self._informers[kind].wait_for(lambda _: predicate())

    def kind_of(self, project: str, name: str) -> str:
        """The kind of a name; empty if none or several workloads have it."""
        known = [kind for kind in WORKLOADS if (project, name) in self._informers[kind].items]
        return known[0] if len(known) == 1 else ""

    def project(self, name: str) -> Project | None:
        return self._context.projects.get(name)

    @property
    def projects(self) -> Mapping[str, Project]:
        return self._context.projects

    def planning_inputs(self) -> PlanningInputs | None:
        """Projects, runtimes and cluster facts; None before the cache is filled."""
        if not self._complete:
            return None
        return PlanningInputs(self._cluster, self._context.projects, self._context.runtimes)

    def revision(self, kind: str) -> int:
        """The resourceVersion up to which all writes of this kind are in the cache."""
        return self._informers[kind].resource_version

    def snapshot(self, owner: CustomResource) -> Snapshot:
        """A snapshot without natives. The footprint of a workload does not depend on them."""
        project = self._context.projects.get(owner.metadata.namespace)
        now = self._client.clock.now()
        return Snapshot(
            owner, (), (), self._cluster, now, project, self._context.runtimes_for(owner, (), now), natives_known=False
        )

    def host_verdict(self, proposed: Workload) -> HostVerdict:
        """Whether a workload as it shall become gets its custom host."""
        return self._context.host_verdict(proposed, self._cluster, self.find(WorkloadKey.of(proposed)))

    def take_changed(self) -> set[WorkloadKey]:
        """Returns and clears the changed workloads."""
        taken, self.changed_keys = self.changed_keys, set()
        self.changed_event.clear()
        return taken

    def _on_event(self, event: Event[CustomResource]) -> None:
        resource = event.object
        if isinstance(resource, Workload):
            self._index_name(resource, exists=event.type != DELETED)
            # The footprint of no other workload depends on a host.
            self._context.observe_host(event)
            before: Any = event.before
            if event.type == DELETED or before is None or _footprint_inputs(before) != _footprint_inputs(resource):
                self.changed_keys.add(WorkloadKey.of(resource))
                self.changed_event.set()
            return
        self.context_version += 1
        if is_affected := self._context.observe(event, self._client.clock.now()):
            self.changed_keys |= {key for key in self.keys() if is_affected(self.find(key))}
            self.changed_event.set()

    def _index_name(self, workload: Workload, *, exists: bool) -> None:
        project, kind, name = WorkloadKey.of(workload)
        names = self._names.setdefault((project, kind), {})
        if exists:
            names[name] = None
            return
        names.pop(name, None)
        if not names:
            del self._names[project, kind]


def _footprint_inputs(workload: Workload) -> object:
    """Everything that determines the footprint, and the annotations, which name the last submission."""
    metadata = workload.metadata
    expired = find_condition(workload.status.conditions, EXPIRED) is not None
    counts = ObservedCounts.of(workload)
    return metadata.uid, metadata.annotations, workload.spec, counts, has_ended(workload), expired
