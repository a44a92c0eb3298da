"""Changes of an existing workload, such as scale or rollback: the resulting spec, and a description of the effects.

A file states the whole workload, and a change states one property of what exists. Each change is a pure function, so
that the CLI can show its effects before it is sent, and the desk can record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from pincompute.api.cancellation import Cancellation, cancelled_by
from pincompute.api.change import (
    FORMER_IMPORTED_PAUSE,
    IMPORTED_PAUSE,
    Break,
    Cancel,
    Change,
    Heal,
    Pause,
    Rerun,
    Restart,
    Resume,
    Rollback,
    Scale,
)
from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.names import INJECTED_FAULT_ANNOTATION, RUN_NOW_ANNOTATION
from pincompute.api.structs import without_defaults
from pincompute.api.task import FAILED_TASKS, Attempt
from pincompute.api.training_job import Elastic, PinterestTrainingJob
from pincompute.api.type_errors import type_errors
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, NOT_FOR_KIND, NOTHING_FAILED, REVISION_INCOMPLETE
from pincompute.planning.batch.runs import continuing_runs_text, requested_run_number
from pincompute.planning.faults.injected import choose_fault, inject_fault, injected_fault, revert_fault
from pincompute.planning.revision_number import default_edits, revision_content
from pincompute.planning.rollback import images_without_digest, rolled_back
from pincompute.planning.views.history import RevisionRecord, describe_changes, describe_moved_tags, find_revision
from pincompute.planning.views.summary import summarize

W = TypeVar("W", bound=Workload)


class EditResult(NamedTuple):
    """The changed workload, or the same one if there was nothing to change."""

    workload: Workload
    effects: tuple[str, ...]
    """One line for each effect, the most important first."""


def apply_change(workload: Workload, change: Change, past: Sequence[RevisionRecord] = ()) -> EditResult:
    """Applies a change; refused with a problem if the kind does not support it, or if its result is invalid."""
    match change:
        case Scale():
            result = _scale(workload, change)
        case Pause():
            result = _pause(workload, change)
        case Resume():
            result = _resume(workload)
        case Cancel():
            result = _cancel(workload, change)
        case Restart():
            result = _restart(workload)
        case Rollback():
            result = _rollback(workload, change, past)
        case Rerun():
            result = _rerun(workload, change)
        case Break():
            result = _break(workload, change, past)
        case Heal():
            result = _heal(workload, past)
    _validate_result(workload, result.workload)
    return result


def summarize_edit(workload: Workload) -> WorkloadSummary:
    """The summary of a workload that was just changed.

    An edit of a batch continues its work, so that it gets the next attempt of the same revision, and not a new one.
    """
    summary = summarize(workload)
    if not isinstance(workload, PinterestJobSet) or workload.status.work != revision_content(workload.spec):
        return summary
    attempt = 1 + len(workload.spec.attempts)
    return msgspec.structs.replace(summary, revision=workload.status.revision, attempt=attempt)


def can_roll_back(workload: Workload) -> bool:
    """False for a batch or a training job that has done any work: finished work cannot be undone.

    A status that the operator has not written yet for the present content tells of the work before.
    """
    if not isinstance(workload, PinterestJobSet | PinterestTrainingJob) or workload.status.done == 0:
        return True
    return workload.status.content not in ("", revision_content(workload.spec))


def preserve_edits(before: Workload | None, after: W) -> W:
    """The workload of a new file, with the earlier edits that the file does not override.

    A deploy thus neither resumes a paused rollout, nor forgets restarts, nor repeats the attempts of a batch. The
    number of replicas is always that of the file. An imported workload rolls out with its first file.
    """
    if before is None or before.kind != after.kind:
        return after
    old: Any = before.spec
    new: Any = after.spec
    kept: dict[str, Any] = {}
    if hasattr(new, "rollout") and hasattr(new.rollout, "restarts"):
        rollout = {name: getattr(new.rollout, name) or getattr(old.rollout, name) for name in ("paused", "restarts")}
        if runs_adopted_replicas(before):
            # The import has set this pause, and no user: it ends with the next deploy.
            rollout["paused"] = new.rollout.paused
        kept["rollout"] = msgspec.structs.replace(new.rollout, **rollout)
    if hasattr(new, "suspended"):
        kept["suspended"] = new.suspended or old.suspended
    same_work = revision_content(old) == revision_content(new)
    if hasattr(new, "cancelled") and same_work:
        kept["cancelled"] = new.cancelled or old.cancelled
    if isinstance(after, PinterestJobSet) and same_work:
        kept["attempts"] = new.attempts or old.attempts
    if isinstance(after, PinterestTrainingJob) and new.attempt == 1:
        kept["attempt"] = old.attempt
    return msgspec.structs.replace(after, spec=msgspec.structs.replace(new, **kept))


def without_edits(workload: W) -> W:
    """The workload with every editable field reset, for comparison with the file from which it was deployed."""
    spec = _spec(workload)
    if isinstance(workload, PinterestTrainingJob):
        # The number of workers can be set in two places, and a rerun can change the resources.
        spec = msgspec.structs.replace(spec.with_workers(0), cpu="", memory="")
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(spec, **default_edits(spec)))


def runs_adopted_replicas(workload: Workload) -> bool:
    """True while an imported workload runs the adopted pods, and no other revision was requested yet."""
    rollout = getattr(workload.spec, "rollout", None)
    return getattr(rollout, "paused", "") in (IMPORTED_PAUSE, FORMER_IMPORTED_PAUSE)


def _scale(workload: Workload, change: Scale) -> EditResult:
    if isinstance(workload, PinterestJobSet):
        return _scale_job_set(workload, change.replicas)
    if isinstance(workload, PinterestTrainingJob) and workload.spec.elastic:
        return _scale_training(workload, workload.spec.elastic, change.replicas)
    if not workload.SCALABLE:
        raise _unsupported(workload, *workload.NOT_SCALABLE)
    now = _spec(workload).replicas
    if now == change.replicas:
        return EditResult(workload, (f"already has {_replica_count(now)}",))
    effect = f"{_replica_count(now)} -> {change.replicas}"
    return EditResult(_replace_spec(workload, replicas=change.replicas), (effect,))


def _scale_job_set(workload: PinterestJobSet, parallelism: int) -> EditResult:
    if parallelism == 0:
        raise _unsupported(workload, "a job set runs at least one task at a time", "pin pause {name}")
    now = workload.spec.parallelism or workload.spec.task_count
    if parallelism == now:
        return EditResult(workload, (f"already runs {now} tasks in parallel",))
    effect = f"{now} tasks in parallel -> {parallelism}"
    return EditResult(_replace_spec(workload, parallelism=parallelism), (effect,))


def _scale_training(workload: PinterestTrainingJob, bounds: Elastic, replicas: int) -> EditResult:
    if not bounds.minimum <= replicas <= bounds.maximum:
        what = f"elastic between {bounds.minimum} and {bounds.maximum} workers, {replicas} requested"
        raise _unsupported(workload, what, f"pin scale {{name}} {min(max(replicas, bounds.minimum), bounds.maximum)}")
    now = workload.spec.active_roles["worker"].replicas
    if now == replicas:
        return EditResult(workload, (f"already has {_replica_count(now)}",))
    scaled = msgspec.structs.replace(workload, spec=workload.spec.with_workers(replicas))
    return EditResult(scaled, (f"{_replica_count(now)} -> {replicas}",))


def _pause(workload: Workload, change: Pause) -> EditResult:
    if paused_by := _paused_by(workload):
        return EditResult(workload, (f"already paused by {paused_by}",))
    paused_by = _user_and_reason(change.by, change.because)
    continuing = continuing_runs_text(workload.status) if isinstance(workload, PinterestCronJob) else ""
    return EditResult(_set_paused(workload, paused_by), (f"paused by {paused_by}{continuing}",))


def _resume(workload: Workload) -> EditResult:
    paused_by = _paused_by(workload)
    if not paused_by:
        return EditResult(workload, ("is not paused",))
    return EditResult(_set_paused(workload, ""), (f"resumed; was paused by {paused_by}",))


def _cancel(workload: Workload, change: Cancel) -> EditResult:
    if not isinstance(workload, PinterestJobSet | PinterestTrainingJob):
        way = "pin scale {name} 0" if workload.SCALABLE else "pin pause {name}"
        what = f"{workload.KIND_NAME} does not end by itself, and has no attempt to cancel"
        raise _unsupported(workload, what, f"{way}, or: pin delete {{name}}")
    attempt = workload.spec.attempt if isinstance(workload, PinterestTrainingJob) else 1 + len(workload.spec.attempts)
    if before := cancelled_by(workload.spec.cancelled, attempt):
        return EditResult(workload, (f"already cancelled by {before}",))
    summary = summarize(workload)
    if summary.done or summary.failed:
        return EditResult(workload, (f"has ended already: {summary.message}",))
    by = _user_and_reason(change.by, change.because)
    kept = "; finished tasks keep their results" if isinstance(workload, PinterestJobSet) else ""
    edited = _replace_spec(workload, cancelled=Cancellation(attempt=attempt, by=by))
    return EditResult(edited, (f"cancelled by {by}{kept}",))


def _restart(workload: Workload) -> EditResult:
    if not _has_rollout(workload):
        what = f"{workload.KIND_NAME} ends by itself, and has no replicas to restart"
        raise _unsupported(workload, what, "pin rerun {name}")
    rollout = _spec(workload).rollout
    paused = f"; the rollout is paused by {rollout.paused}" if rollout.paused else ""
    restarted = msgspec.structs.replace(rollout, restarts=rollout.restarts + 1)
    return EditResult(_replace_spec(workload, rollout=restarted), (f"its replicas are recreated{paused}",))


def _rollback(workload: Workload, change: Rollback, past: Sequence[RevisionRecord]) -> EditResult:
    if not can_roll_back(workload):
        what = f"the finished work of {workload.KIND_NAME} cannot be undone; another program starts from zero"
        raise _unsupported(workload, what, "pin deploy FILE, or: pin rerun {name}")
    target = find_revision(workload, past, change.to)
    restored = rolled_back(workload, target)
    if restored.spec == workload.spec:
        return EditResult(workload, (f"already equal to {target.label}",))
    missing = images_without_digest(workload, target)
    if missing and not change.partial:
        what = f"{target.label} cannot be restored completely: no digest was recorded for image {', '.join(missing)}"
        note = "its container never started; the tag decides what runs, and may have moved since"
        to = f"pin rollback {workload.metadata.name} --to {target.number} --partial"
        raise Refused(Problem(REVISION_INCOMPLETE, what, Where(object=workload.metadata.key), note, to))
    changes = describe_changes(type(workload), without_defaults(workload.spec), without_defaults(restored.spec))
    return EditResult(
        restored,
        (
            f"rolled back to {target.label}",
            *changes,
            *describe_moved_tags(target, past),
            *_runtime_note(workload, target),
        ),
    )


def _runtime_note(workload: Workload, target: RevisionRecord) -> tuple[str, ...]:
    now = workload.status.runtime
    if not target.runtime or target.runtime == now:
        return ()
    return (f"runtime {now} stays: {target.label} ran with {target.runtime}, which `hold` in its file can keep",)


def _break(workload: Workload, change: Break, past: Sequence[RevisionRecord]) -> EditResult:
    faulty = inject_fault(workload, change.fault, past)
    if change.silently:
        return EditResult(faulty, ("fault injected",))
    changes = describe_changes(type(workload), without_defaults(workload.spec), without_defaults(faulty.spec))
    return EditResult(faulty, (f"fault injected: {choose_fault(workload, change.fault).description}", *changes))


def _heal(workload: Workload, past: Sequence[RevisionRecord]) -> EditResult:
    fault = injected_fault(workload)
    if fault is None:
        was_injected = INJECTED_FAULT_ANNOTATION in workload.metadata.annotations
        reason = "the workload was changed since the fault was injected" if was_injected else "none was injected"
        return EditResult(workload, (f"no fault to remove: {reason}",))
    restored, target = revert_fault(workload, fault, past)
    changes = describe_changes(type(workload), without_defaults(workload.spec), target.raw_spec)
    return EditResult(restored, (f"fault {fault.fault} removed, rolled back to {target.label}", *changes))


def _rerun(workload: Workload, change: Rerun) -> EditResult:
    resources = {name: amount for name in ("cpu", "memory") if (amount := getattr(change, name))}
    refuse_all(
        Problem(DOCUMENT_INVALID, error.what, Where(object=workload.metadata.key), error.note, error.next)
        for error in type_errors(Attempt, resources, ())
    )
    match workload:
        case PinterestJobSet():
            return _rerun_tasks(workload, change)
        case PinterestTrainingJob():
            return _rerun_training(workload, change)
        case PinterestCronJob():
            return _run_now(workload, change)
    raise _unsupported(workload, f"{workload.KIND_NAME} runs forever, and cannot be rerun", "pin restart {name}")


def _rerun_tasks(workload: PinterestJobSet, change: Rerun) -> EditResult:
    spec = workload.spec
    which = f"tasks {change.tasks}" if change.tasks != FAILED_TASKS else _failed_tasks_text(workload, change)
    attempt = Attempt(tasks=change.tasks, reason=change.reason, cpu=change.cpu, memory=change.memory)
    edited = _replace_spec(workload, attempts=[*spec.attempts, attempt])
    return EditResult(edited, (f"attempt {len(spec.attempts) + 2}: {which}{_resources_text(change)}",))


def _failed_tasks_text(workload: PinterestJobSet, change: Rerun) -> str:
    status, name = workload.status, workload.metadata.name
    failures = [each for each in status.failures if change.reason in {"Any", each.reason}]
    by_reason = "" if change.reason == "Any" else f" with {change.reason}"
    if not failures:
        what = f"no task of {name} failed{by_reason}"
        others = ", ".join(f"{each.count} with {each.reason}" for each in status.failures)
        note = f"failed tasks: {others}" if others else ""
        raise Refused(Problem(NOTHING_FAILED, what, Where(object=workload.metadata.key), note, f"pin get {name}"))
    count = sum(each.count for each in failures)
    return f"the {count} {'task' if count == 1 else 'tasks'} that failed{by_reason}"


def _rerun_training(workload: PinterestTrainingJob, change: Rerun) -> EditResult:
    if change.tasks != FAILED_TASKS or change.reason != "Any":
        what = "a training job has no tasks to select: it is rerun as a whole"
        raise _unsupported(workload, what, "pin rerun {name}")
    spec = workload.spec
    resources = {name: value for name, value in (("cpu", change.cpu), ("memory", change.memory)) if value}
    edited = _replace_spec(workload, attempt=spec.attempt + 1, **resources)
    return EditResult(edited, (f"attempt {spec.attempt + 1}: starts again{_resources_text(change)}",))


def _run_now(workload: PinterestCronJob, change: Rerun) -> EditResult:
    if change != Rerun(by=change.by):
        what = "a periodic job has no tasks to select, and no resources other than those of its file"
        raise _unsupported(workload, what, "pin rerun {name}")
    metadata = workload.metadata
    requested = requested_run_number(workload)
    number = 1 + max(workload.status.last_run_now, requested if isinstance(requested, int) else 0)
    annotated = msgspec.structs.replace(metadata, annotations={**metadata.annotations, RUN_NOW_ANNOTATION: str(number)})
    return EditResult(msgspec.structs.replace(workload, metadata=annotated), ("one run starts now",))


def _paused_by(workload: Workload) -> str:
    """The user and the reason of the pause; empty while the workload is not paused."""
    spec = _spec(workload)
    paused_by: str = spec.rollout.paused if _has_rollout(workload) else spec.suspended
    return paused_by


def _user_and_reason(user: str, reason: str) -> str:
    return ": ".join(each for each in (user or "an unknown user", reason) if each)


def _set_paused(workload: W, paused_by: str) -> W:
    if _has_rollout(workload):
        return _replace_spec(workload, rollout=msgspec.structs.replace(_spec(workload).rollout, paused=paused_by))
    return _replace_spec(workload, suspended=paused_by)


def _has_rollout(workload: Workload) -> bool:
    """True for kinds that run forever; the others end by themselves."""
    return hasattr(workload.spec, "rollout")


def _replace_spec(workload: W, **fields: Any) -> W:
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))


def _spec(workload: Workload) -> Any:
    """The spec without its static type, for fields that only some kinds have."""
    return workload.spec


def _replica_count(count: int) -> str:
    return f"{count} {'replica' if count == 1 else 'replicas'}"


def _resources_text(change: Rerun) -> str:
    amounts = [f"{name} {getattr(change, name)}" for name in ("cpu", "memory") if getattr(change, name)]
    return f", with {' and '.join(amounts)}" if amounts else ""


def _unsupported(workload: Workload, what: str, next_: str) -> Refused:
    next_ = next_.format(name=workload.metadata.name)
    return Refused(Problem(NOT_FOR_KIND, what, Where(object=workload.metadata.key), next=next_))


def _validate_result(before: Workload, after: Workload) -> None:
    """Refuses errors that the change introduces; errors that were there before are not its fault."""
    try:
        msgspec.convert(msgspec.to_builtins(after.spec), type(after.spec))
    except msgspec.ValidationError as error:
        raise Refused(Problem(DOCUMENT_INVALID, str(error), Where(object=after.metadata.key))) from error
    name, key = after.metadata.name, after.metadata.key
    known = set(before.spec.field_errors(name))
    refuse_all(
        Problem(
            DOCUMENT_INVALID,
            error.what,
            Where(object=key, field=".".join(map(str, ("spec", *error.path)))),
            error.note,
            error.next,
        )
        for error in after.spec.field_errors(name)
        if error not in known
    )
