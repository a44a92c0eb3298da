"""Caches the inputs that workloads share: projects, the hosts of services, the cluster's runtimes and their parts.

A change of a shared input must reconcile exactly the owners that it affects. `observe` therefore answers each event
with a predicate over owners: a new runtime that no workload gets yet must not trigger a pass of every workload in the
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any

from pincompute.api.custom_resource import CustomResource
from pincompute.api.service import PinterestService
from pincompute.api.workload import Workload
from pincompute.controller.host_index import HostIndex
from pincompute.controller.resources import PROJECT_KINDS, RUNTIME_KINDS
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.hosts import HOST_GRANTED, HostVerdict, host_claim, judge_claim
from pincompute.planning.runtimes.daemon_pins import pin_of, pinned_revisions
from pincompute.planning.runtimes.roll import roll_health
from pincompute.planning.runtimes.selection import Runtimes, choose_runtime, choose_runtime_if_started_now
from pincompute.planning.snapshot import Cluster

IsAffected = Callable[[CustomResource], bool]
"""Whether an owner must be reconciled after a change."""


class PlanningContextCache:
    """Projects, runtimes and parts as last seen. Fed with events by the cluster cache."""

    def __init__(self) -> None:
        self.projects: dict[str, Any] = {}
        self.runtimes = Runtimes()
        self._hosts = HostIndex()
        self._resources: dict[tuple[str, str], CustomResource] = {}
        """Runtimes and parts, by kind and name."""

    @property
    def rolling_runtime(self) -> CustomResource | None:
        """The runtime that is being rolled out at present."""
        return self.runtimes.by_number.get(self.runtimes.next)

    def runtimes_for(self, owner: CustomResource, owners: Iterable[CustomResource], now: datetime) -> Runtimes:
        """The runtimes as a planner of this owner needs them.

        Only the runtime that is being rolled out needs the health of all workloads, which is costly to count.
        """
        if owner is not self.rolling_runtime:
            return self.runtimes
        workloads = (each for each in owners if isinstance(each, Workload))
        return self.runtimes._replace(health=roll_health(workloads, self.runtimes, now))

    def host_verdict(
        self, owner: CustomResource, cluster: Cluster, former: CustomResource | None = None
    ) -> HostVerdict:
        """Whether a service gets its custom host. `former` is as stored, if `owner` is as it shall become."""
        claim = host_claim(owner, former)
        if claim is None:
            return HOST_GRANTED
        return judge_claim(claim, self._hosts.claims(claim.host), cluster.host_rules, self.projects)

    def observe(self, event: Event[CustomResource], now: datetime) -> IsAffected | None:
        """Takes in an event; returns which owners it affects, or None if it affects none."""
        if isinstance(event.object, PinterestService):
            return self.observe_host(event)
        if isinstance(event.object, PROJECT_KINDS):
            return self._observe_project(event)
        return self._observe_runtime(event, now) if isinstance(event.object, RUNTIME_KINDS) else None

    def observe_host(self, event: Event[Any]) -> IsAffected | None:
        """Takes in an event about a service; returns which other services with the same host it affects."""
        affected = self._hosts.observe(event)
        return _is_one_of(affected) if affected else None

    def _observe_project(self, event: Event[Any]) -> IsAffected | None:
        name = event.object.metadata.name
        before = self.projects.pop(name, None)
        after = None if event.type == DELETED else event.object
        if after is not None:
            self.projects[name] = after
        if before is not None and after is not None and before.spec == after.spec:
            return None
        hosts = self._hosts_decided_by(name, before, after)
        return lambda owner: owner.metadata.namespace == name or hosts(owner)

    def _hosts_decided_by(self, name: str, before: Any, after: Any) -> IsAffected:
        """The services with a host that a change of this project may decide: by its domain, or by its list of hosts."""
        listed = {host for each in (before, after) if each for host in each.spec.hosts}
        patterns = {host for host in listed if host.startswith("*.")}
        return _is_one_of(
            self._hosts.services(
                host
                for host in self._hosts.hosts()
                if host in listed or f"*.{host.partition('.')[2]}" in patterns or f".{name}." in f".{host}."
            )
        )

    def _observe_runtime(self, event: Event[CustomResource], now: datetime) -> IsAffected | None:
        resource, before = event.object, self.runtimes
        if event.type == DELETED:
            self._resources.pop((resource.kind, resource.metadata.name), None)
        else:
            self._resources[resource.kind, resource.metadata.name] = resource
        after = self.runtimes = Runtimes.from_resources(self._resources.values())
        if _relevant_fields(before) == _relevant_fields(after):
            return None
        return lambda owner: _is_affected_by_runtimes(owner, before, after, now)


def _is_one_of(services: Collection[tuple[str, str]]) -> IsAffected:
    return lambda owner: (owner.metadata.namespace, owner.metadata.name) in services


def _is_affected_by_runtimes(owner: CustomResource, before: Runtimes, after: Runtimes, now: datetime) -> bool:
    """Workloads that get another runtime or parts; and all runtimes and parts: their statuses refer to one another."""
    if isinstance(owner, Workload):
        if any(read(owner, before) != read(owner, after) for read in (pin_of, pinned_revisions)):
            return True
        return any(
            choose(owner, before, now) != choose(owner, after, now)
            for choose in (choose_runtime, choose_runtime_if_started_now)
        )
    return isinstance(owner, RUNTIME_KINDS)


def _relevant_fields(runtimes: Runtimes) -> object:
    """Everything that planning reads. The status of a roll beyond its cursor is left out: it changes all the time."""
    specs = {number: each.spec for number, each in runtimes.by_number.items()}
    part_specs = {name: each.spec for name, each in runtimes.parts.items()}
    return runtimes.current, runtimes.next, runtimes.cursor, runtimes.holds_void_before, specs, part_specs
