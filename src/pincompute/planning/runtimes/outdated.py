"""The condition Outdated: replicas run a runtime that was replaced long ago, even if everything is as wanted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pincompute.api.status import OUTDATED, SUCCEEDED
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import RUNTIME_OUTDATED
from pincompute.planning import status
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.runtimes.selection import Runtimes, choose_runtime, part_serves
from pincompute.planning.snapshot import Snapshot

OUTDATED_AFTER = timedelta(days=30)


class ReplacedRuntime(NamedTuple):
    """A runtime that replicas still run, although another one has replaced it."""

    number: int
    """0 if no known runtime has these parts."""
    replaced_by: int
    since: datetime


def add_outdated_condition(plan: Plan, snapshot: Snapshot) -> Plan:
    """Add the condition to a plan, or wake up when it becomes true."""
    others = [each for each in plan.status.conditions if each.type != OUTDATED]
    replaced = _oldest_replaced_runtime(snapshot)
    if replaced is None:
        return plan._replace(status=msgspec.structs.replace(plan.status, conditions=others))
    left_s = (replaced.since + OUTDATED_AFTER - snapshot.now).total_seconds()
    if left_s > 0:
        new_status = msgspec.structs.replace(plan.status, conditions=others)
        return plan._replace(status=new_status, wake_after_s=soonest(plan.wake_after_s, left_s))
    problem = _outdated_problem(snapshot.owner, replaced)
    condition = status.build_condition(snapshot, OUTDATED, RUNTIME_OUTDATED, problem.message(), status=True)
    new_status = msgspec.structs.replace(
        plan.status, conditions=[*others, condition], next=plan.status.next or ("" if plan.why else problem.next)
    )
    return plan._replace(status=new_status, why=plan.why or problem)


def _oldest_replaced_runtime(snapshot: Snapshot) -> ReplacedRuntime | None:
    """Oldest runtime among the replicas. Those kept by a hold do not count: a hold is valid until its date."""
    owner, runtimes = snapshot.owner, snapshot.runtimes
    chosen = choose_runtime(owner, runtimes, snapshot.now)
    pods = status.active_pods_of(snapshot)
    if chosen.held_until or chosen.number >= runtimes.current:
        names = tuple(each.metadata.name for each in chosen.parts)
        pods = tuple(each for each in pods if each.parts != names)
    numbers = {_runtime_of_pod(each, owner, runtimes) for each in pods}
    replaced = (_find_replacement(number, runtimes) for number in sorted(numbers))
    return min((each for each in replaced if each), key=lambda each: each.since, default=None)


def _runtime_of_pod(pod: Pod, owner: Workload, runtimes: Runtimes) -> int:
    """Newest runtime with exactly the parts of the pod for this workload; 0 if there is none."""
    for number in sorted(runtimes.by_number, reverse=True):
        parts = (runtimes.parts.get(each) for each in runtimes.by_number[number].spec.parts)
        if pod.parts == tuple(each.metadata.name for each in parts if each and part_serves(each, owner)):
            return number
    return 0


def _find_replacement(number: int, runtimes: Runtimes) -> ReplacedRuntime | None:
    """The first later runtime with a complete roll."""
    later = (
        each for each in runtimes.by_number.values() if number < each.number <= runtimes.current and each.status.done
    )
    done = [(datetime.fromisoformat(each.status.done), each.number) for each in later]
    since, by = min(done, default=(None, 0))
    return ReplacedRuntime(number, by, since) if since else None


def _outdated_problem(owner: Workload, replaced: ReplacedRuntime) -> Problem:
    name = owner.metadata.name
    old = f"runtime {replaced.number}" if replaced.number else "parts of an unknown runtime"
    what = (
        f"{owner.REPLICA_NOUN[1]} of {name} run {old}, which runtime {replaced.replaced_by} replaced"
        f" more than {OUTDATED_AFTER.days} days ago"
    )
    note = f"its roll was complete on {replaced.since.date()}"
    is_finite = owner.GOAL == SUCCEEDED
    if is_finite:
        note = f"{note}; work in progress only gets new sidecar images"
    next_ = f"pin rerun {name}, after it has ended" if is_finite else f"pin restart {name}"
    return Problem(RUNTIME_OUTDATED, what, Where(object=owner.metadata.key), note, next_)
