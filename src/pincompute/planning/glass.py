"""Glass that was broken: what runs unreviewed for a while, how that is told, and what comes of it later. Pure.

Nothing is ever stopped by it: no running workload notices.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from pincompute.api.glass import Glass, Wish
from pincompute.api.project import Project
from pincompute.api.status import UNREVIEWED
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import GLASS_BROKEN, GLASS_OVERDUE, GLASS_REFUSED
from pincompute.objects.times import stamp
from pincompute.planning import status
from pincompute.planning.landing import only_landed
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.snapshot import Snapshot

W = TypeVar("W", bound=Workload)

LONGEST = timedelta(hours=24)
MOST = 1024
"""Characters of a reason."""


def refusal(wish: Wish) -> Problem | None:
    """Why the glass stays whole."""
    if not wish.because.strip():
        return Problem(GLASS_REFUSED, "nothing is said of why", next='--break-glass "INC-4711: what is on fire"')
    if len(wish.because) > MOST:
        return Problem(GLASS_REFUSED, f"the reason has more than {MOST:,} characters")
    if not 0 < wish.seconds <= LONGEST.total_seconds():
        what = f"the glass is broken for {LONGEST.total_seconds() / 3600:.0f} hours at most"
        return Problem(GLASS_REFUSED, what, next="--for 4h, and once more if that is not enough")
    return None


def broken(wish: Wish, by: str, now: datetime) -> Glass:
    return Glass(until=stamp(now + timedelta(seconds=wish.seconds)), by=by, because=wish.because.strip())


def behind(workload: W, glass: Glass | None) -> W:
    """The workload, as it is let in."""
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, break_glass=glass))


def needless(project: Project | None, workload: Workload) -> Problem | None:
    """Why there is nothing to break."""
    if only_landed(project):
        return None
    what = f"the project {workload.metadata.namespace} takes work that nobody has reviewed"
    return Problem(GLASS_REFUSED, what, Where(object=workload.metadata.place), next="leave --break-glass out")


def overdue(workload: Workload, now: datetime) -> Problem | None:
    """Why nothing but what was reviewed changes it any more."""
    glass = workload.spec.break_glass
    if glass is None or now < _end(glass):
        return None
    name = workload.metadata.name
    what = f"nobody has reviewed what {name} runs, and it was let in until {glass.until} only"
    next_ = f"pin deploy {name} --version VERSION, or go back to what was reviewed: pin rollback {name}"
    return Problem(GLASS_OVERDUE, what, Where(object=workload.metadata.place), _words(glass), next_)


def with_glass(plan: Plan, snapshot: Snapshot) -> Plan:
    """What is planned, and that nobody has reviewed it."""
    owner: Workload = snapshot.owner
    glass = owner.spec.break_glass
    others = [each for each in plan.status.conditions if each.type != UNREVIEWED]
    if glass is None:
        return plan._replace(status=msgspec.structs.replace(plan.status, conditions=others))
    problem = overdue(owner, snapshot.now)
    reason, message = (GLASS_OVERDUE, problem.message()) if problem else (GLASS_BROKEN, _running(owner, glass))
    told = status.said(snapshot, UNREVIEWED, reason, message, status=True)
    said = msgspec.structs.replace(plan.status, conditions=[*others, told])
    if problem is None:
        left = (_end(glass) - snapshot.now).total_seconds()
        return plan._replace(status=said, wake_after=soonest(plan.wake_after, left))
    next_ = said.next or ("" if plan.why else problem.next)
    return plan._replace(status=msgspec.structs.replace(said, next=next_), why=plan.why or problem)


def trace(glass: Glass) -> str:
    """As a record has it."""
    return f"until {glass.until}: {glass.because}"


def _running(owner: Workload, glass: Glass) -> str:
    return f"{owner.metadata.name} is not reviewed, and may run so until {glass.until}: {_words(glass)}"


def _words(glass: Glass) -> str:
    return f"{glass.by or 'somebody'} broke the glass: {glass.because or 'nothing was said of why'}"


def _end(glass: Glass) -> datetime:
    """What cannot be read was over before it began."""
    try:
        return datetime.fromisoformat(glass.until)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
