"""Status of workloads that run under break-glass: reported as unreviewed, and as a problem once the override expires.

An expired override never stops a running workload. It blocks further unreviewed changes, raises a warning event and
shows in `pin why` until a reviewed build is deployed. The decision on a request for an override is in
`pincompute.admission.break_glass`.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from pincompute.api.break_glass import BreakGlass
from pincompute.api.status import UNREVIEWED
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import BREAK_GLASS_ACTIVE, BREAK_GLASS_EXPIRED
from pincompute.planning import status
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.snapshot import Snapshot


def check_break_glass_expired(workload: Workload, now: datetime) -> Problem | None:
    """The problem of a workload that is still unreviewed after its override has expired."""
    override = workload.spec.break_glass
    if override is None or now < _expiry(override):
        return None
    name = workload.metadata.name
    what = f"emergency override of {name} expired at {override.until}, and what runs is still unreviewed"
    next_ = f"pin deploy {name} --version VERSION, or go back to a reviewed revision: pin rollback {name}"
    return Problem(BREAK_GLASS_EXPIRED, what, Where(object=workload.metadata.key), _origin(override), next_)


def add_unreviewed_condition(plan: Plan, snapshot: Snapshot) -> Plan:
    """Adds the Unreviewed condition to the status, and a wake-up for the moment at which the override expires.

    An expired override becomes the plan's problem only where there is no other: an outage is more urgent.
    """
    owner: Workload = snapshot.owner
    override = owner.spec.break_glass
    others = [each for each in plan.status.conditions if each.type != UNREVIEWED]
    if override is None:
        return plan._replace(status=msgspec.structs.replace(plan.status, conditions=others))
    problem = check_break_glass_expired(owner, snapshot.now)
    reason, message = (
        (BREAK_GLASS_EXPIRED, problem.message()) if problem else (BREAK_GLASS_ACTIVE, _active_message(owner, override))
    )
    condition = status.build_condition(snapshot, UNREVIEWED, reason, message, status=True)
    report = msgspec.structs.replace(plan.status, conditions=[*others, condition])
    if problem is None:
        remaining_s = (_expiry(override) - snapshot.now).total_seconds()
        return plan._replace(status=report, wake_after_s=soonest(plan.wake_after_s, remaining_s))
    next_ = report.next or ("" if plan.why else problem.next)
    return plan._replace(status=msgspec.structs.replace(report, next=next_), why=plan.why or problem)


def _active_message(owner: Workload, override: BreakGlass) -> str:
    return (
        f"emergency override active: {owner.metadata.name} runs unreviewed until {override.until}, {_origin(override)}"
    )


def _origin(override: BreakGlass) -> str:
    return f"started by {override.by or 'an unknown user'}: {override.because or 'no reason given'}"


def _expiry(override: BreakGlass) -> datetime:
    """An end that cannot be parsed counts as expired, so that a forged value grants no time."""
    try:
        return datetime.fromisoformat(override.until)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
