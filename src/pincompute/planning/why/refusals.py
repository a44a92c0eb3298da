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
from pincompute.planning.why.cause import Cause, Rank, Seen, Wait
from pincompute.planning.why.words import beginning, lasting

PATIENCE = 60.0
"""Seconds in which somebody should have made the first copy."""
_MAKERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "PyTorchJob", "TFJob")
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_UNSAID = re.compile(r"failed quota: (?P<name>[^:]+): must specify (?P<fields>.+)")
_SECURITY = re.compile(r"violates PodSecurity \"(?P<level>[^:\"]+)[^\"]*\": (?P<rules>.+)")
_PASSING = "error looking up service account"
"""It is made at the same time as the copies."""


def look(snapshot: Snapshot) -> Seen:
    for native in _makers(snapshot):
        failed = native.says("ReplicaFailure")
        if failed:
            yield _refused(snapshot, native, failed.message)
    yield from _none_made(snapshot)


def late(snapshot: Snapshot) -> Seen:
    """A rollout that has not moved for long: the end of patience, never its own cause."""
    for native in _makers(snapshot):
        said = native.says("Progressing", "False")
        if said and said.reason == "ProgressDeadlineExceeded":
            what = "the rollout has not moved for longer than its deadline"
            problem = Problem(ROLLOUT_LATE, what, _where(native), beginning(said.message), _describe(snapshot, native))
            yield Cause(problem, Rank.LAST)


def _refused(snapshot: Snapshot, native: Native, words: str) -> Cause:
    owner = snapshot.owner
    project = owner.metadata.namespace
    rank = Rank.SLOW
    if used_up := _QUOTA.search(words):
        problem = _quota(snapshot, used_up)
    elif unsaid := _UNSAID.search(words):
        what = f"the quota {unsaid['name']} of project {project} wants to know {beginning(unsaid['fields'])}"
        problem = Problem(COPY_REFUSED, what, next="say it in the file, under resources in the template")
        rank = Rank.FINAL
    elif _PASSING in words:
        problem = Problem(
            COPY_REFUSED,
            f"the identity of the {owner.COPY[1]} is not there",
            note=beginning(words),
            next=_describe(snapshot, native),
        )
        rank = Rank.LAST
    else:
        problem, rank = _against_rules(snapshot, words), Rank.FINAL
        if problem.reason is ADMISSION_UNREACHABLE:
            rank = Rank.SLOW
    return Cause(problem._replace(where=_where(native), what=f"{problem.what}{_missing(snapshot)}"), rank)


def _quota(snapshot: Snapshot, found: re.Match[str]) -> Problem:
    """With the numbers that are short."""
    project, one = snapshot.owner.metadata.namespace, snapshot.owner.COPY[0]
    requested, used, limited = (_amounts(found[each]) for each in ("requested", "used", "limited"))
    short = "; ".join(
        f"a {one} needs {_plain(name)} {amount}, and {used.get(name, '0')} of {limited.get(name, '?')} are used"
        for name, amount in requested.items()
    )
    allows = "is used up" if any(value != "0" for value in limited.values()) else "allows nothing"
    what = f"the quota {found['name']} of project {project} {allows}"
    less = " or ".join(each for each in ("cpu", "memory", "gpus") if any(each in _plain(name) for name in requested))
    ask = f"ask for less {less} in the file, or for" if less else "ask for"
    return Problem(
        QUOTA_USED_UP,
        what,
        note=short,
        next=f"{ask} a larger quota: kubectl describe quota {found['name']} -n {project}",
    )


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
    """Only a Deployment says why it makes none; of the others it can only be seen that there are none."""
    owner = snapshot.owner
    if any(pod.workload == owner.metadata.name for pod in snapshot.pods):
        return
    for native in _makers(snapshot):
        if native.kind == "Deployment" or native.says("Suspended") or not native.metadata.creation_timestamp:
            continue
        age = (snapshot.now - _since(snapshot, native)).total_seconds()
        if age < PATIENCE:
            yield Wait(PATIENCE - age)
            continue
        what = f"no {owner.COPY[0]} was made in {lasting(PATIENCE)}"
        note = f"a quota or a rule may stand against it; of a {native.kind} only Kubernetes' events say why"
        yield Cause(Problem(NOT_MADE, what, _where(native), note, _describe(snapshot, native)), Rank.SLOW)


def _since(snapshot: Snapshot, native: Native) -> datetime:
    """When the first copy was first missed: what was well until now has been missed for no time."""
    owner = snapshot.owner
    made = datetime.fromisoformat(native.metadata.creation_timestamp)
    goal = condition(owner.status.conditions, owner.GOAL)
    if goal is None:
        return made
    return snapshot.now if goal.status == "True" else max(made, datetime.fromisoformat(goal.last_transition_time))


def _makers(snapshot: Snapshot) -> list[Native]:
    return sorted(
        (each for each in snapshot.natives if each.kind in _MAKERS), key=lambda each: (each.kind, each.metadata.name)
    )


def _missing(snapshot: Snapshot) -> str:
    wanted = getattr(snapshot.owner.spec, "replicas", 0)
    there = sum(pod.lives and pod.workload == snapshot.owner.metadata.name for pod in snapshot.pods)
    return f" ({wanted - there} of {wanted} {snapshot.owner.COPY[1]})" if wanted > max(1, there) else ""


def _amounts(words: str) -> dict[str, str]:
    """`pods=3,requests.cpu=2`."""
    return {name: amount for name, _, amount in (each.partition("=") for each in words.split(","))}


def _plain(name: str) -> str:
    word = name.removeprefix("requests.").removeprefix("limits.")
    return "gpus" if word.endswith("/gpu") else word


def _where(native: Native) -> Where:
    return Where(object=f"{native.kind.lower()} {native.metadata.name}")


def _describe(snapshot: Snapshot, native: Native) -> str:
    return f"kubectl describe {native.kind.lower()} {native.metadata.name} -n {snapshot.owner.metadata.namespace}"
