"""Copies that Kubernetes refuses to make: a quota, a rule or somebody's webhook stands against them."""

from __future__ import annotations

import re
from datetime import datetime

from pincompute.api.names import PRIORITY
from pincompute.api.status import condition
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    ADMISSION_DENIED,
    ADMISSION_UNREACHABLE,
    COPY_REFUSED,
    NOT_MADE,
    POD_SECURITY,
    PRIORITY_MISSING,
    QUOTA_USED_UP,
    ROLLOUT_LATE,
)
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.why import quotas
from pincompute.planning.why.cause import Cause, Rank, Seen, Wait
from pincompute.planning.why.words import beginning, lasting

PATIENCE = 60.0
"""Seconds in which somebody should have made the first copy."""
_MAKERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "PyTorchJob", "TFJob")
_SECURITY = re.compile(r"violates PodSecurity \"(?P<level>[^:\"]+)[^\"]*\": (?P<rules>.+)")
_SAID = ("ReplicaFailure", "Suspended", "Complete", "Succeeded", "Failed")
"""A native that says this has a reason to have no pods."""
_PASSING = ("error looking up service account", "already exists", "being terminated")
"""An account is made at the same time as the copies, and of a name there is one at a time."""
MAY_PASS = frozenset({QUOTA_USED_UP, ADMISSION_UNREACHABLE})
"""What stands against it may be gone when it is tried again."""


def look(snapshot: Snapshot) -> Seen:
    for native in _makers(snapshot):
        failed = native.says("ReplicaFailure")
        if failed:
            yield from _refused(snapshot, native, failed.message)
    yield from _none_made(snapshot)


def late(snapshot: Snapshot) -> Seen:
    """A rollout that has not moved for long: the end of patience, never its own cause."""
    for native in _makers(snapshot):
        said = native.says("Progressing", "False")
        if said and said.reason == "ProgressDeadlineExceeded":
            what = "the rollout has not moved for longer than its deadline"
            problem = Problem(ROLLOUT_LATE, what, _where(native), beginning(said.message), _describe(snapshot))
            yield Cause(problem, Rank.LAST)


def _refused(snapshot: Snapshot, native: Native, words: str) -> Seen:
    age = _age(snapshot, native)
    if passing(words) and age < PATIENCE:
        yield Wait(PATIENCE - age)
        return
    problem = refused(snapshot, words)
    what = f"{problem.what}{_missing(snapshot)}"
    rank = Rank.SLOW if problem.reason in MAY_PASS else Rank.FINAL
    yield Cause(problem._replace(where=_where(native), what=what), rank)


def passing(words: str) -> bool:
    """It is so for a moment while something else is made, or goes."""
    return any(each in words for each in _PASSING)


def short(snapshot: Snapshot) -> int:
    """So many copies are missing."""
    wanted = getattr(snapshot.owner.spec, "replicas", 0)
    return int(wanted) - sum(pod.lives and pod.workload == snapshot.owner.metadata.name for pod in snapshot.pods)


def refused(snapshot: Snapshot, words: str) -> Problem:
    """By the API server's own words."""
    against_quota = quotas.exceeded(snapshot, words) or quotas.unsaid(snapshot, words)
    return against_quota or _against_rules(snapshot, words)


def _against_rules(snapshot: Snapshot, words: str) -> Problem:
    said = beginning(words)
    if security := _SECURITY.search(words):
        project = snapshot.owner.metadata.namespace
        what = f"project {project} only allows what is {security['level']}, and the pod asks for more"
        return Problem(
            POD_SECURITY, what, note=beginning(security["rules"]), next="take what the note names out of spec.template"
        )
    if "PriorityClass" in words:
        what = f"the priority class {PRIORITY}{snapshot.owner.spec.tier} is missing"
        return Problem(
            PRIORITY_MISSING,
            what,
            note=said,
            next="tell the infrastructure team: the cluster lacks the classes of its tiers",
        )
    if "failed calling webhook" in words:
        what = "a webhook that is asked about every copy does not answer"
        return Problem(ADMISSION_UNREACHABLE, what, note=said, next="tell the infrastructure team which webhook it is")
    if "denied the request" in words or "denied request" in words:
        what = "a rule of this cluster forbids such copies"
        return Problem(
            ADMISSION_DENIED,
            what,
            note=said,
            next="change what the note names, or ask the infrastructure team for an exception",
        )
    return Problem(COPY_REFUSED, "Kubernetes refuses to make copies", note=said, next="change what the note names")


def _none_made(snapshot: Snapshot) -> Seen:
    """Only a Deployment may say why; of what others make it can only be seen that there is none."""
    owner = snapshot.owner
    if any(pod.workload == owner.metadata.name for pod in snapshot.pods):
        return
    for native in _makers(snapshot):
        if any(native.says(each) for each in _SAID) or not native.metadata.creation_timestamp:
            continue
        age = _age(snapshot, native)
        if age < PATIENCE:
            yield Wait(PATIENCE - age)
            continue
        what = f"no {owner.COPY[0]} was made in {lasting(PATIENCE)}"
        note = "a quota or a rule stands against it, or whoever makes them is down: only Kubernetes' events say which"
        yield Cause(Problem(NOT_MADE, what, _where(native), note, _describe(snapshot)), Rank.SLOW)


def _age(snapshot: Snapshot, native: Native) -> float:
    """Seconds for which copies have been missed: what was well until now has missed none."""
    owner = snapshot.owner
    goal = condition(owner.status.conditions, owner.GOAL)
    if (goal and goal.status == "True") or not native.metadata.creation_timestamp:
        return 0.0
    made = datetime.fromisoformat(native.metadata.creation_timestamp)
    missed = datetime.fromisoformat(goal.last_transition_time) if goal else made
    return (snapshot.now - max(made, missed)).total_seconds()


def _makers(snapshot: Snapshot) -> list[Native]:
    return sorted(
        (each for each in snapshot.natives if each.kind in _MAKERS), key=lambda each: (each.kind, each.metadata.name)
    )


def _missing(snapshot: Snapshot) -> str:
    wanted, missing = getattr(snapshot.owner.spec, "replicas", 0), short(snapshot)
    return f" ({missing} of {wanted} {snapshot.owner.COPY[1]})" if wanted > 1 and missing > 0 else ""


def _where(native: Native) -> Where:
    return Where(object=f"{native.kind.lower()} {native.metadata.name}")


def _describe(snapshot: Snapshot) -> str:
    return f"pin show {snapshot.owner.metadata.name}"
