"""What a verb makes of a workload: its next spec, and in words what that does.

A new file says what a workload is; an edit says one thing of what is there. An edit is a pure function, so whoever
writes it can say beforehand what it does, and a desk can record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from pincompute.api.change import AS_FOUND, Break, Change, Heal, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.names import BROKEN, RUN_NOW
from pincompute.api.summary import Summary
from pincompute.api.task import FAILED, Attempt
from pincompute.api.training_job import Elastic, PinterestTrainingJob
from pincompute.api.wire import spoken
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, NOT_FOR_KIND, NOTHING_FAILED
from pincompute.planning.batch.attempts import work
from pincompute.planning.batch.runs import asked
from pincompute.planning.faults.broken import broken, healed, spoiled
from pincompute.planning.faults.catalogue import BY_NAME
from pincompute.planning.people.history import Past, differences, former, moved
from pincompute.planning.people.summary import summarize

W = TypeVar("W", bound=Workload)


class Edit(NamedTuple):
    """Refused where it cannot be; the same workload where there is nothing to do."""

    workload: Workload
    said: tuple[str, ...]
    """What it does, the most important first."""


def edit(workload: Workload, change: Change, past: Sequence[Past] = ()) -> Edit:
    """The workload as it is to be."""
    match change:
        case Scale():
            done = _scale(workload, change)
        case Pause():
            done = _pause(workload, change)
        case Resume():
            done = _resume(workload)
        case Restart():
            done = _restart(workload)
        case Rollback():
            done = _rollback(workload, change, past)
        case Rerun():
            done = _rerun(workload, change)
        case Break():
            done = _break(workload, change, past)
        case Heal():
            done = _heal(workload, past)
    _must_be_valid(workload, done.workload)
    return done


def summarized(workload: Workload) -> Summary:
    """With the number that people know it by: an edit of a batch goes on with its work, and is no new revision."""
    summary = summarize(workload)
    if not isinstance(workload, PinterestJobSet) or workload.status.work != work(workload.spec):
        return summary
    attempt = 1 + len(workload.spec.attempts)
    return msgspec.structs.replace(summary, revision=workload.status.revision, attempt=attempt)


def goes_back(workload: Workload) -> bool:
    """What a batch or a training has done cannot be undone; one that has done nothing yet may be another."""
    ends = isinstance(workload, PinterestJobSet | PinterestTrainingJob)
    return not ends or workload.status.done == 0


def carried(before: Workload | None, after: W) -> W:
    """A new file, as it is written where edits were made: what it does not speak of stays as it was edited.

    So a deploy neither lets go on what somebody paused, nor makes copies anew because they once were, nor forgets what
    ran again. Copies are always the file's. What was imported rolls out with its first file.
    """
    if before is None or before.kind != after.kind:
        return after
    old: Any = before.spec
    new: Any = after.spec
    kept: dict[str, Any] = {}
    if hasattr(new, "rollout") and hasattr(new.rollout, "restarts"):
        rollout = {each: getattr(new.rollout, each) or getattr(old.rollout, each) for each in ("paused", "restarts")}
        if as_found(before):
            # Nobody's edit: it is so until its file is deployed.
            rollout["paused"] = new.rollout.paused
        kept["rollout"] = msgspec.structs.replace(new.rollout, **rollout)
    if hasattr(new, "suspended"):
        kept["suspended"] = new.suspended or old.suspended
    if isinstance(after, PinterestJobSet) and work(old) == work(new):
        kept["attempts"] = new.attempts or old.attempts
    if isinstance(after, PinterestTrainingJob) and new.attempt == 1:
        kept["attempt"] = old.attempt
    return msgspec.structs.replace(after, spec=msgspec.structs.replace(new, **kept))


def filed(workload: W) -> W:
    """What its file alone says of it: without all that somebody may edit since."""
    spec = _spec(workload)
    if isinstance(workload, PinterestTrainingJob):
        # It is scaled wherever it says how many it is, and runs again with other amounts.
        spec = msgspec.structs.replace(spec.scaled(0), cpu="", memory="")
    untouched: dict[str, Any] = {each: _UNEDITED[each] for each in _UNEDITED if hasattr(spec, each)}
    if _runs_on(workload):
        untouched["rollout"] = msgspec.structs.replace(spec.rollout, paused="", restarts=0)
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(spec, **untouched))


_UNEDITED: dict[str, Any] = {"replicas": 0, "parallelism": None, "suspended": "", "attempts": [], "attempt": 1}


def as_found(workload: Workload) -> bool:
    """Its copies are those that were there before it, and nobody has asked for others."""
    rollout = getattr(workload.spec, "rollout", None)
    return getattr(rollout, "paused", "") == AS_FOUND


def _scale(workload: Workload, change: Scale) -> Edit:
    if isinstance(workload, PinterestJobSet):
        if change.copies == 0:
            raise _refused(workload, "a job set runs one task at a time at least", "pin pause {name}")
        now = workload.spec.parallelism or workload.spec.count
        said = f"{now} tasks side by side -> {change.copies}" if change.copies != now else f"{now} tasks already"
        return Edit(workload if change.copies == now else _with(workload, parallelism=change.copies), (said,))
    if isinstance(workload, PinterestTrainingJob) and workload.spec.elastic:
        return _scale_training(workload, workload.spec.elastic, change.copies)
    if not workload.SCALES:
        raise _refused(workload, *_UNSCALED[workload.kind])
    now = _spec(workload).replicas
    if now == change.copies:
        return Edit(workload, (f"has {_copies(now)} already",))
    return Edit(_with(workload, replicas=change.copies), (f"{_copies(now)} -> {change.copies}",))


def _scale_training(workload: PinterestTrainingJob, bounds: Elastic, copies: int) -> Edit:
    if not bounds.minimum <= copies <= bounds.maximum:
        what = f"it is elastic from {bounds.minimum} to {bounds.maximum} workers, and {copies} are asked for"
        raise _refused(workload, what, f"pin scale {{name}} {min(max(copies, bounds.minimum), bounds.maximum)}")
    now = workload.spec.members["worker"].replicas
    if now == copies:
        return Edit(workload, (f"has {_copies(now)} already",))
    scaled = msgspec.structs.replace(workload, spec=workload.spec.scaled(copies))
    return Edit(scaled, (f"{_copies(now)} -> {copies}",))


def _pause(workload: Workload, change: Pause) -> Edit:
    if held := _held(workload):
        return Edit(workload, (f"is paused already, by {held}",))
    words = ": ".join(each for each in (change.by or "somebody", change.because) if each)
    return Edit(_hold(workload, words), (f"is paused by {words}",))


def _resume(workload: Workload) -> Edit:
    held = _held(workload)
    if not held:
        return Edit(workload, ("is not paused",))
    return Edit(_hold(workload, ""), (f"goes on; it was paused by {held}",))


def _restart(workload: Workload) -> Edit:
    if not _runs_on(workload):
        what = f"{_WORDS[workload.kind]} ends by itself, and has no copies to make anew"
        raise _refused(workload, what, "pin rerun {name}")
    rollout = _spec(workload).rollout
    held = f"; the rollout is paused by {rollout.paused}" if rollout.paused else ""
    made = msgspec.structs.replace(rollout, restarts=rollout.restarts + 1)
    return Edit(_with(workload, rollout=made), (f"its copies are made anew{held}",))


def _rollback(workload: Workload, change: Rollback, past: Sequence[Past]) -> Edit:
    if not goes_back(workload):
        what = f"what {_WORDS[workload.kind]} has done cannot be undone; another program begins from nothing"
        raise _refused(workload, what, "pin deploy FILE, or: pin rerun {name}")
    target = former(workload, past, change.to)
    changed = differences(type(workload), spoken(workload.spec), target.said)
    if target.spec == workload.spec:
        return Edit(workload, (f"is what {target.label} was already",))
    back = msgspec.structs.replace(workload, spec=target.spec)
    return Edit(back, (f"is again what {target.label} was", *changed, *moved(target, past)))


def _break(workload: Workload, change: Break, past: Sequence[Past]) -> Edit:
    made = spoiled(workload, change.fault, past)
    changed = () if change.silently else differences(type(workload), spoken(workload.spec), spoken(made.spec))
    about = "" if change.silently else f" on purpose: {BY_NAME[change.fault].about}"
    return Edit(made, (f"is broken{about}", *changed))


def _heal(workload: Workload, past: Sequence[Past]) -> Edit:
    found = broken(workload)
    if found is None:
        since = "it was changed since it was broken" if BROKEN in workload.metadata.annotations else "nobody broke it"
        return Edit(workload, (f"needs no healing: {since}",))
    back, target = healed(workload, found, past)
    changed = differences(type(workload), spoken(workload.spec), target.said)
    return Edit(back, (f"is healed of {found.fault}, and again what {target.label} was", *changed))


def _rerun(workload: Workload, change: Rerun) -> Edit:
    match workload:
        case PinterestJobSet():
            return _rerun_tasks(workload, change)
        case PinterestTrainingJob():
            return _rerun_training(workload, change)
        case PinterestCronJob():
            return _run_now(workload, change)
    raise _refused(workload, f"{_WORDS[workload.kind]} runs on, and has no end to run again", "pin restart {name}")


def _rerun_tasks(workload: PinterestJobSet, change: Rerun) -> Edit:
    spec = workload.spec
    which = f"tasks {change.tasks}" if change.tasks != FAILED else _failed(workload, change)
    attempt = Attempt(tasks=change.tasks, reason=change.reason, cpu=change.cpu, memory=change.memory)
    edited = _with(workload, attempts=[*spec.attempts, attempt])
    return Edit(edited, (f"attempt {len(spec.attempts) + 2}: {which}{_given(change)}",))


def _failed(workload: PinterestJobSet, change: Rerun) -> str:
    status, name = workload.status, workload.metadata.name
    ways = [each for each in status.failures if change.reason in {"Any", each.reason}]
    why = "" if change.reason == "Any" else f" by {change.reason}"
    if not ways:
        others = ", ".join(f"{each.count} by {each.reason}" for each in status.failures)
        note = f"there failed {others}" if others else ""
        raise Refused(
            Problem(
                NOTHING_FAILED,
                f"no task of {name} has failed{why}",
                Where(object=workload.metadata.place),
                note,
                f"pin get {name}",
            )
        )
    count = sum(each.count for each in ways)
    return f"the {count} {'task' if count == 1 else 'tasks'} that failed{why}"


def _rerun_training(workload: PinterestTrainingJob, change: Rerun) -> Edit:
    if change.tasks != FAILED or change.reason != "Any":
        what = "a training job runs again whole: it has no tasks to choose from"
        raise _refused(workload, what, "pin rerun {name}")
    spec = workload.spec
    given = {name: value for name, value in (("cpu", change.cpu), ("memory", change.memory)) if value}
    edited = _with(workload, attempt=spec.attempt + 1, **given)
    return Edit(edited, (f"attempt {spec.attempt + 1}: it begins anew{_given(change)}",))


def _run_now(workload: PinterestCronJob, change: Rerun) -> Edit:
    if change != Rerun(by=change.by):
        what = "a periodic job runs as its file says: it has no tasks to choose from"
        raise _refused(workload, what, "pin rerun {name}")
    metadata = workload.metadata
    before = asked(workload)
    number = 1 + max(workload.status.ran_now, before if isinstance(before, int) else 0)
    annotated = msgspec.structs.replace(metadata, annotations={**metadata.annotations, RUN_NOW: str(number)})
    return Edit(msgspec.structs.replace(workload, metadata=annotated), ("runs once now",))


_UNSCALED = {
    PinterestDaemon.__name__: (
        "a daemon runs once on each node",
        "write other nodes: into its file, and: pin deploy FILE",
    ),
    PinterestCronJob.__name__: ("a periodic job has no copies: each run is one", "pin rerun {name}"),
    PinterestTrainingJob.__name__: (
        "copies that train together know how many they are",
        "write other workers: into its file, and: pin deploy FILE",
    ),
}
"""Why not, and which verb will do."""


def _held(workload: Workload) -> str:
    spec = _spec(workload)
    held: str = spec.rollout.paused if _runs_on(workload) else spec.suspended
    return held


def _hold(workload: W, words: str) -> W:
    if _runs_on(workload):
        return _with(workload, rollout=msgspec.structs.replace(_spec(workload).rollout, paused=words))
    return _with(workload, suspended=words)


def _runs_on(workload: Workload) -> bool:
    """It has copies that a rollout replaces; the others end by themselves."""
    return hasattr(workload.spec, "rollout")


def _with(workload: W, **fields: Any) -> W:
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))


def _spec(workload: Workload) -> Any:
    """Of whichever kind."""
    return workload.spec


def _copies(count: int) -> str:
    return f"{count} {'copy' if count == 1 else 'copies'}"


def _given(change: Rerun) -> str:
    amounts = [f"{each} {getattr(change, each)}" for each in ("cpu", "memory") if getattr(change, each)]
    return f", with {' and '.join(amounts)}" if amounts else ""


_WORDS = {
    "PinterestService": "a service",
    "PinterestStatefulSet": "a stateful set",
    "PinterestDaemon": "a daemon",
    "PinterestJobSet": "a job set",
    "PinterestCronJob": "a periodic job",
    "PinterestTrainingJob": "a training job",
}


def _refused(workload: Workload, what: str, next_: str) -> Refused:
    return Refused(
        Problem(
            NOT_FOR_KIND, what, Where(object=workload.metadata.place), next=next_.format(name=workload.metadata.name)
        )
    )


def _must_be_valid(before: Workload, after: Workload) -> None:
    """What is wrong with it that was not wrong before."""
    try:
        msgspec.convert(msgspec.to_builtins(after.spec), type(after.spec))
    except msgspec.ValidationError as error:
        raise Refused(Problem(DOCUMENT_INVALID, str(error), Where(object=after.metadata.place))) from error
    name = after.metadata.name
    known = set(before.spec.faults(name))
    refuse_all(
        Problem(
            DOCUMENT_INVALID,
            each.what,
            Where(object=after.metadata.place)._replace(field=".".join(map(str, ("spec", *each.path)))),
            each.note,
            each.next,
        )
        for each in after.spec.faults(name)
        if each not in known
    )
