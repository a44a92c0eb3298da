"""The fleet that a platform tells of, as rolls are planned by it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pincompute.api.fleet import Fleet
from pincompute.api.kinds import KINDS
from pincompute.api.noun import Noun
from pincompute.api.runtime import Roll, Runtime
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import RUNTIME_UNKNOWN
from pincompute.planning.people.preview import LAPTOP, Surroundings
from pincompute.planning.runtimes.roll import RollPlan, plan_roll
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Cluster, Snapshot


class Live(NamedTuple):
    around: Surroundings
    workloads: tuple[Workload, ...]

    @property
    def runtimes(self) -> Runtimes:
        return self.around.runtimes

    def known(self, number: int) -> Runtime:
        known = self.runtimes.known
        if number not in known:
            note = f"the runtimes are {', '.join(map(str, known))}" if known else "this platform has none"
            raise Refused(Problem(RUNTIME_UNKNOWN, f"there is no runtime {number}", note=note))
        return known[number]

    def plan(self, number: int, roll: Roll | None = None) -> RollPlan:
        """Rolled as it says itself, or as is said here."""
        this = self.known(number)
        if roll:
            this = msgspec.structs.replace(this, spec=msgspec.structs.replace(this.spec, roll=roll))
        runtimes = self.runtimes._replace(known={**self.runtimes.known, number: this})
        now, around = SystemClock().now(), self.around
        snapshots = (
            Snapshot(each, (), (), around.cluster, now, around.projects.get(each.metadata.namespace), runtimes)
            for each in self.workloads
        )
        return plan_roll(number, runtimes, snapshots)


def live(fleet: Fleet) -> Live:
    nouns: list[Noun] = [msgspec.convert(each, KINDS[each["kind"]]) for each in fleet.nouns]
    cluster = Cluster.of(fleet.facts) if fleet.facts else LAPTOP
    return Live(Surroundings.of(nouns, cluster), tuple(each for each in nouns if isinstance(each, Workload)))
