"""The fleet of a platform, fetched and parsed, to plan rolls of runtimes locally."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.fleet import Fleet
from pincompute.api.kinds import KINDS
from pincompute.api.runtime import Roll, Runtime
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import RUNTIME_UNKNOWN
from pincompute.cli.target import Target, connect
from pincompute.planning.runtimes.roll_preview import RollPlan, plan_roll
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, PlanningInputs


class FleetState(NamedTuple):
    context: PlanningInputs
    workloads: tuple[Workload, ...]

    @property
    def runtimes(self) -> Runtimes:
        return self.context.runtimes

    def runtime(self, number: int) -> Runtime:
        known = self.runtimes.by_number
        if number not in known:
            note = f"the runtimes are {', '.join(map(str, known))}" if known else "this platform has no runtimes"
            raise Refused(Problem(RUNTIME_UNKNOWN, f"no runtime {number}", note=note))
        return known[number]

    def plan_roll_of(self, number: int, roll: Roll | None = None) -> RollPlan:
        """Preview the roll of a runtime, with its own settings unless others are given."""
        runtime = self.runtime(number)
        if roll:
            runtime = msgspec.structs.replace(runtime, spec=msgspec.structs.replace(runtime.spec, roll=roll))
        runtimes = self.runtimes._replace(by_number={**self.runtimes.by_number, number: runtime})
        now, cluster, projects = SystemClock().now(), self.context.cluster, self.context.projects
        snapshots = (
            Snapshot(each, (), (), cluster, now, projects.get(each.metadata.namespace), runtimes, natives_known=False)
            for each in self.workloads
        )
        return plan_roll(number, runtimes, snapshots)


def fleet_state_of(fleet: Fleet) -> FleetState:
    resources: list[CustomResource] = [msgspec.convert(each, KINDS[each["kind"]]) for each in fleet.resources]
    cluster = Cluster.from_facts(fleet.cluster_facts) if fleet.cluster_facts else LOCAL_CLUSTER
    workloads = tuple(each for each in resources if isinstance(each, Workload))
    return FleetState(PlanningInputs.of(resources, cluster), workloads)


async def fetch_fleet_state(target: Target) -> FleetState:
    async with connect(target) as platform:
        return fleet_state_of(await platform.fleet())
