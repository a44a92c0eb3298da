"""Copies that train together: who is there, who is missing, and when all of them are handed to the scheduler.

Each copy is made with a gate, so that no node is sought for it. The gates are lifted together, once all copies are
there. So a quota that lets only some of them be made holds all of them back. That only some of them find room on the
nodes holds nobody back, as nodes are not read here: it is told instead. A copy that is made anew while the others run
finds them there, and waits for nobody.
"""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.names import GANG
from pincompute.api.training_job import SERVES, TrainingJobSpec
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.steps import Ungate

# Kubeflow's labels.
ROLE = "training.kubeflow.org/replica-type"
INDEX = "training.kubeflow.org/replica-index"

Seat = tuple[str, int]
"""Role and number, such as worker 0."""


class Member(NamedTuple):
    seat: Seat
    pod: Pod

    @property
    def done(self) -> bool:
        return self.pod.status.phase == "Succeeded"

    @property
    def failed(self) -> bool:
        return self.pod.status.phase == "Failed"

    @property
    def runs(self) -> bool:
        return self.pod.lives and any(each.state.running for each in self.pod.status.container_statuses)

    @property
    def gated(self) -> bool:
        return self.pod.lives and any(each.name == GANG for each in self.pod.spec.scheduling_gates)


class Gang(NamedTuple):
    """Every copy that there should be, and those that there are."""

    seats: tuple[Seat, ...]
    members: tuple[Member, ...] = ()
    least: int | None = None
    """With how many of them it can train, where not all are needed."""

    @property
    def missing(self) -> tuple[Seat, ...]:
        """What has failed is made anew, or the job has failed with it: it is not there."""
        there = {each.seat for each in self.members if each.done or each.pod.lives}
        return tuple(seat for seat in self.seats if seat not in there)

    @property
    def enough(self) -> bool:
        missing = len(self.missing)
        return not missing if self.least is None else len(self.seats) - missing >= self.least

    @property
    def living(self) -> tuple[Pod, ...]:
        return tuple(each.pod for each in self.members if each.pod.lives)

    @property
    def gated(self) -> tuple[Member, ...]:
        return tuple(each for each in self.members if each.gated)

    def of(self, role: str) -> Gang:
        """Those of one role."""
        return Gang(
            tuple(seat for seat in self.seats if seat[0] == role),
            tuple(each for each in self.members if each.seat[0] == role),
        )


def gang(snapshot: Snapshot, job: Native | None) -> Gang:
    """The pods of the job, and none of one that was there before."""
    spec: TrainingJobSpec = snapshot.owner.spec
    seats = tuple((role, index) for role, said in spec.members.items() for index in range(said.replicas))
    least = spec.elastic.minimum if spec.elastic else None
    if job is None:
        return Gang(seats, (), least)
    theirs = {
        _seat(pod): pod
        for pod in sorted(snapshot.pods, key=lambda each: each.metadata.name)
        if pod.metadata.controller == job.metadata.uid and not pod.metadata.deletion_timestamp
    }
    return Gang(seats, tuple(Member(seat, theirs[seat]) for seat in seats if seat in theirs), least)


def lifted(found: Gang) -> tuple[Ungate, ...]:
    """All or none, or as many as it can train with."""
    if not found.enough:
        return ()
    return tuple(Ungate(each.pod.metadata.name, each.pod.metadata.uid, _others(each.pod)) for each in found.gated)


def awaited(spec: TrainingJobSpec, found: Gang) -> Gang:
    """Those who must end well."""
    if spec.success == "leader":
        leader = found.of(spec.leader)
        return Gang(leader.seats[:1], tuple(each for each in leader.members if each.seat in leader.seats[:1]))
    if spec.elastic:
        # Who is not there is not needed; who comes and goes is not missed.
        return Gang(tuple(each.seat for each in found.members), found.members)
    return Gang(
        tuple(seat for seat in found.seats if seat[0] != SERVES),
        tuple(each for each in found.members if each.seat[0] != SERVES),
    )


def called(seat: Seat) -> str:
    return f"{seat[0]} {seat[1]}"


def _seat(pod: Pod) -> Seat:
    index = pod.metadata.labels.get(INDEX, "")
    return pod.metadata.labels.get(ROLE, ""), int(index) if index.isdigit() else -1


def _others(pod: Pod) -> tuple[str, ...]:
    return tuple(each.name for each in pod.spec.scheduling_gates if each.name != GANG)
