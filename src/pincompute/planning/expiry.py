"""The end of a workload's life: announced, then stopped, and after a grace period deleted.

The time is that of `expires` of the workload, or that of its project if it is earlier. The project is an upper bound
and no wish of the workload's owner: a workload that only its project stops is not deleted.

A stop uses the edits that commands make, which are no part of a revision: no replicas, or a suspension. An expiry
that is postponed therefore brings back what ran before. The grace period begins when the stop is recorded in the
status. A time that is long past, because the operator was down or a file was wrong, thus deletes nothing at once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.expiry import MIN_SPAN, expiry_errors, parse_expiry
from pincompute.api.project import Project
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.status import EXPIRED, EXPIRES_SOON, READY, Condition, find_condition
from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.times import format_time
from pincompute.planning import status
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.snapshot import Snapshot

MAX_WARNING = timedelta(days=1)
"""How long before its end a workload is announced to expire; half of its life if that is shorter."""
MAX_GRACE = timedelta(days=7)
"""How long a stopped workload is kept before it is deleted; as long as its life if that was shorter."""

_DELETED_WITHOUT_A_PLAN = frozenset({"Deployment", "DaemonSet", "CronJob", "Job", "PyTorchJob", "TFJob"})
"""Objects that create pods, and that a later plan recreates as they were. The deletion of a StatefulSet may delete its
claims, so that one is stopped only by a plan."""


class Expiry(NamedTuple):
    """The end that one `expires` field names."""

    ends: datetime
    life: timedelta
    """From the creation to the end, at least the shortest span."""
    source: str
    """The object with the field, for messages: `project ads`, empty for the workload itself."""

    @property
    def warned_from(self) -> datetime:
        return self.ends - min(MAX_WARNING, self.life / 2)

    @property
    def grace(self) -> timedelta:
        return min(MAX_GRACE, self.life)


def plan_with_expiry(planner: Callable[[Snapshot], Plan], snapshot: Snapshot) -> Plan:
    """Plan a workload with regard to the end of its life."""
    owner: Workload = snapshot.owner
    if problem := check_expires_field(owner):
        return status.refused_plan(snapshot, (problem,))
    expiry = find_expiry(owner, snapshot.project, snapshot.now)
    if expiry is None or snapshot.now < expiry.ends:
        planned = announce_expiry(planner(snapshot), snapshot, expiry)
    else:
        planned = planner(snapshot) if status.has_ended(owner) else _plan_stop(planner, snapshot)
        planned = _report_expired(planned, snapshot, expiry)
    ends = format_time(expiry.ends) if expiry else ""
    return planned._replace(status=msgspec.structs.replace(planned.status, expires=ends))


def check_expires_field(resource: Workload | Project) -> Problem | None:
    """Problem of an invalid field in an object that was written without the desk's validation."""
    for error in expiry_errors(resource.spec.expires):
        where = Where(object=resource.metadata.key.strip("/"), field="spec.expires")
        return Problem(DOCUMENT_INVALID, error.what, where, error.note, error.next)
    return None


def check_expires_later(
    resource: Workload | Project, stored: Workload | Project | None, now: datetime
) -> Problem | None:
    """Problem of a workload or project to deploy, whose life would have ended. `stored` is the present one, if any."""
    created = stored.metadata.creation_timestamp if stored else ""
    metadata = msgspec.structs.replace(resource.metadata, creation_timestamp=created)
    expiry = own_expiry(msgspec.structs.replace(resource, metadata=metadata), now)
    if expiry is None or now < expiry.ends:
        return None
    expires = resource.spec.expires
    since = f", counted from its creation at {created}" if created and expires[-1:] in "hd" else ""
    return Problem(
        DOCUMENT_INVALID,
        f"expires is {expires}, which was over at {format_time(expiry.ends)}{since}",
        Where(object=resource.metadata.key.strip("/"), field="spec.expires"),
        next=f"set a later time, or remove it; it is {format_time(now)} now",
    )


def own_expiry(resource: Workload | Project, now: datetime) -> Expiry | None:
    """The end by the object's own field; None without a valid one."""
    text, created = resource.spec.expires, _creation_time(resource, now)
    if not text or any(expiry_errors(text)):
        return None
    ends = parse_expiry(text, created)
    source = f"project {resource.metadata.name}" if isinstance(resource, Project) else ""
    return Expiry(ends, max(ends - created, MIN_SPAN), source)


def find_expiry(resource: Workload | Project, project: Project | None, now: datetime) -> Expiry | None:
    """The end of a workload or project, which is that of its project if that is earlier."""
    found = (own_expiry(each, now) for each in (resource, project) if each is not None)
    return min((each for each in found if each), key=lambda each: each.ends, default=None)


def announce_expiry(plan: Plan, snapshot: Snapshot, expiry: Expiry | None) -> Plan:
    """Add the condition ExpiresSoon, and wake up when it becomes true and when the end has come."""
    if expiry is None or snapshot.now < expiry.warned_from:
        left_s = (expiry.warned_from - snapshot.now).total_seconds() if expiry else None
        return _with_condition(plan, None)._replace(wake_after_s=soonest(plan.wake_after_s, left_s))
    condition = status.build_condition(
        snapshot, EXPIRES_SOON, reasons.EXPIRES_SOON, _announcement(snapshot, expiry), status=True
    )
    left_s = (expiry.ends - snapshot.now).total_seconds()
    return _with_condition(plan, condition)._replace(wake_after_s=soonest(plan.wake_after_s, left_s))


def report_project_expiry(plan: Plan, snapshot: Snapshot) -> Plan:
    """Add the conditions of a project. Its workloads are stopped; the namespace and what it holds stay."""
    owner: Project = snapshot.owner
    expiry = own_expiry(owner, snapshot.now)
    if expiry is None or snapshot.now < expiry.ends:
        return announce_expiry(plan, snapshot, expiry)
    message = f"expired at {format_time(expiry.ends)}: its workloads are stopped, and nothing is deleted"
    return _with_condition(plan, status.build_condition(snapshot, EXPIRED, reasons.EXPIRED, message, status=True))


def _report_expired(plan: Plan, snapshot: Snapshot, expiry: Expiry) -> Plan:
    """Add the condition Expired, whose transition begins the grace period, and decide whether that is over."""
    owner: Workload = snapshot.owner
    begun = status.build_condition(snapshot, EXPIRED, reasons.EXPIRED, "", status=True)
    deleted_at = _deletion_time(owner, datetime.fromisoformat(begun.last_transition_time), snapshot.now)
    problem = _expired_problem(owner, expiry, deleted_at)
    reported = _with_condition(plan, msgspec.structs.replace(begun, message=problem.message()))
    left_s = (deleted_at - snapshot.now).total_seconds() if deleted_at else None
    if left_s is not None and left_s <= 0:
        return reported._replace(delete_owner=True)
    reported = reported._replace(wake_after_s=soonest(plan.wake_after_s, left_s))
    goal = find_condition(plan.status.conditions, owner.GOAL)
    has_result = owner.GOAL != READY and goal is not None and goal.status != "Unknown"
    if plan.problems or has_result:
        return reported
    missed = status.build_condition(
        snapshot, owner.GOAL, reasons.EXPIRED, problem.message(), status=False if owner.GOAL == READY else None
    )
    others = [each for each in reported.status.conditions if each.type != owner.GOAL]
    new_status = msgspec.structs.replace(reported.status, next=problem.next, conditions=[missed, *others])
    return reported._replace(status=new_status, why=problem)


def _plan_stop(planner: Callable[[Snapshot], Plan], snapshot: Snapshot) -> Plan:
    """Plan a workload without pods. Where its plan is refused, the objects that create its pods are deleted instead:
    otherwise a deployer could outlive the end of the project by an edit that no plan accepts."""
    planned = planner(snapshot._replace(owner=_without_pods(snapshot.owner), expired=True))
    if not planned.problems:
        return planned._replace(retained=tuple(each for each in planned.retained if each not in _open_jobs(snapshot)))
    kept = tuple(
        (each.kind, each.metadata.name) for each in snapshot.natives if each.kind not in _DELETED_WITHOUT_A_PLAN
    )
    return planned._replace(problems=(), retained=kept)


def _open_jobs(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Jobs that work goes on in. One that could not be suspended, as it was made by another version, is deleted.

    Runs of a cron job end by themselves.
    """
    if isinstance(snapshot.owner, PinterestCronJob):
        return frozenset()
    jobs = (each for each in snapshot.natives if each.kind in {"Job", "PyTorchJob", "TFJob"})
    ends = ("Complete", "Succeeded", "Failed")
    return frozenset(
        (each.kind, each.metadata.name) for each in jobs if not any(each.find_condition(end) for end in ends)
    )


def _without_pods(owner: Workload) -> Workload:
    """The workload as commands would stop it. Daemons have no such edit: `Snapshot.expired` stops them."""
    spec: Any = owner.spec
    edits: dict[str, Any] = {"replicas": 0, "suspended": "the platform: expired"}
    changed = {name: value for name, value in edits.items() if hasattr(spec, name)}
    return msgspec.structs.replace(owner, spec=msgspec.structs.replace(spec, **changed))


def _deletion_time(owner: Workload, stopped: datetime, now: datetime) -> datetime | None:
    """Time at which a stopped workload is deleted; None if only its project has expired."""
    own = own_expiry(owner, now)
    return max(own.ends, stopped) + own.grace if own else None


def _announcement(snapshot: Snapshot, expiry: Expiry) -> str:
    owner = snapshot.owner
    if isinstance(owner, Project):
        return f"expires at {format_time(expiry.ends)}: its workloads are stopped then, and nothing is deleted"
    deleted_at = _deletion_time(owner, expiry.ends, snapshot.now)
    by = f", with {expiry.source}" if expiry.source else ""
    return f"expires at {format_time(expiry.ends)}{by}: it is stopped then, and {_deletion_text(owner, deleted_at)}"


def _expired_problem(owner: Workload, expiry: Expiry, deleted_at: datetime | None) -> Problem:
    by = f", with {expiry.source}" if expiry.source else ""
    what = f"expired at {format_time(expiry.ends)}{by}: stopped, to be {_deletion_text(owner, deleted_at)}"
    if deleted_at is None:
        what = f"expired at {format_time(expiry.ends)}{by}: stopped, but not deleted"
    next_ = f"set a later time in expires, and: pin deploy {owner.metadata.name}.yaml"
    if expiry.source:
        next_ = f"an administrator sets a later time in expires: kubectl edit {expiry.source}"
    return Problem(reasons.EXPIRED, what, Where(object=owner.metadata.key), next=next_)


def _deletion_text(owner: Workload, deleted_at: datetime | None) -> str:
    if deleted_at is None:
        return "not deleted"
    claims = isinstance(owner, PinterestStatefulSet) and owner.spec.all_claims
    return f"deleted at {format_time(deleted_at)}{', except for its claims' if claims else ''}"


def _with_condition(plan: Plan, condition: Condition | None) -> Plan:
    others = [each for each in plan.status.conditions if each.type not in {EXPIRES_SOON, EXPIRED}]
    conditions = [*others, condition] if condition else others
    return plan._replace(status=msgspec.structs.replace(plan.status, conditions=conditions))


def _creation_time(resource: Workload | Project, now: datetime) -> datetime:
    """A resource that is only planned has not been created yet."""
    created = resource.metadata.creation_timestamp
    return datetime.fromisoformat(created) if created else now
