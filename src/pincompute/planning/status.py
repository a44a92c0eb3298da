"""What planners of every kind say of a workload in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pincompute.api.names import WORKLOAD
from pincompute.api.status import Condition, Progress, Status, condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import Reason
from pincompute.objects.times import stamp
from pincompute.planning.plan import Plan
from pincompute.planning.pods.pod import Made, simulated
from pincompute.planning.snapshot import Pod, Snapshot


def pods_of(snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods of this workload that live, ended ones left out."""
    name = snapshot.owner.metadata.name
    return tuple(pod for pod in snapshot.pods if pod.workload == name and pod.lives)


def progress(wanted: int, pods: Sequence[Pod]) -> Progress:
    return Progress(
        wanted=wanted,
        scheduled=sum(pod.says("PodScheduled") for pod in pods),
        started=sum(any(each.state.running for each in pod.status.container_statuses) for pod in pods),
        ready=sum(pod.ready for pod in pods),
    )


def said(snapshot: Snapshot, type_: str, reason: Reason, message: str, *, status: bool | None) -> Condition:
    """One condition; None is Unknown. The time of a change is kept from the status before."""
    owner = snapshot.owner
    word = {True: "True", False: "False", None: "Unknown"}[status]
    before = condition(owner.status.conditions, type_)
    same = before is not None and before.status == word
    return Condition(
        type=type_,
        status=word,
        reason=reason.code,
        message=message,
        last_transition_time=before.last_transition_time if before and same else stamp(snapshot.now),
        observed_generation=owner.metadata.generation,
    )


def common(snapshot: Snapshot, made: Made, pods: Sequence[Pod], why: Problem | None) -> Status:
    """What a status says of every workload; each kind replaces what it says otherwise."""
    owner: Workload = snapshot.owner
    return Status(
        observed_generation=owner.metadata.generation,
        revision=owner.metadata.generation,
        runtime=made.runtime,
        parts=list(made.parts),
        replicas=len(pods),
        ready_replicas=sum(pod.ready for pod in pods),
        renewed=sum(pod.renewed and pod.parts == made.parts for pod in pods),
        selector=f"{WORKLOAD}={owner.metadata.name}",
        simulated=simulated(owner, snapshot.cluster),
        next=why.next if why else "",
    )


def refused(snapshot: Snapshot, problems: tuple[Problem, ...]) -> Plan:
    """Nothing can be done, and nothing is undone: what runs goes on."""
    owner, first = snapshot.owner, problems[0]
    goal = said(snapshot, owner.GOAL, first.reason, first.message(), status=False)
    others = [each for each in owner.status.conditions if each.type != owner.GOAL]
    generation = owner.metadata.generation
    status = msgspec.structs.replace(
        owner.status, observed_generation=generation, revision=generation, next=first.next, conditions=[goal, *others]
    )
    return Plan((), status, why=first, problems=problems)
