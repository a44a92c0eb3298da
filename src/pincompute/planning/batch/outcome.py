"""What came of a batch, in words: its condition, and why it is not done."""

from __future__ import annotations

from collections.abc import Sequence

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.status import SUCCEEDED, Condition
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import REASONS
from pincompute.objects.quantity import amount, binary
from pincompute.planning import status
from pincompute.planning.batch import attempts
from pincompute.planning.batch.attempts import Course
from pincompute.planning.batch.failures import Cause, grouped
from pincompute.planning.pods.pod import LEAST_MEMORY
from pincompute.planning.snapshot import Native, Snapshot

_SHOWN = 40
"""Letters of a list of tasks that a message shows."""


def enough(snapshot: Snapshot, found: Course) -> bool:
    spec: JobSetSpec = snapshot.owner.spec
    return len(found.done) >= spec.needed


def wanted_now(snapshot: Snapshot, found: Course) -> int:
    """Pods that should run."""
    spec: JobSetSpec = snapshot.owner.spec
    if found.running is None or spec.suspended:
        return 0
    left = len(attempts.unfinished(found, found.running))
    return min(left, spec.parallelism or left)


def condition(
    snapshot: Snapshot, found: Course, started: int, why: Problem | None, retried: Sequence[Cause] = ()
) -> Condition:
    """True or False once no attempt is left; until then nobody can know."""
    spec: JobSetSpec = snapshot.owner.spec
    message = _counts(snapshot, found)
    if found.running is None:
        done = enough(snapshot, found)
        reason = reasons.SUCCEEDED if done else why.reason if why else reasons.TASK_FAILED
        message = message if done or why is None else f"{message}; {why.message()}"
        return status.said(snapshot, SUCCEEDED, reason, message, status=done)
    if spec.suspended:
        message = f"{message}; suspended by {spec.suspended}"
        return status.said(snapshot, SUCCEEDED, reasons.SUSPENDED, message, status=None)
    message = ", ".join([message, *([f"{started} running"] if started else []), *_again(retried)])
    if why:
        return status.said(snapshot, SUCCEEDED, why.reason, f"{message}; {why.message()}", status=None)
    return status.said(snapshot, SUCCEEDED, reasons.PROGRESSING, message, status=None)


def why(snapshot: Snapshot, found: Course) -> Problem | None:
    """The way in which most of the failed tasks failed."""
    if not found.failures or (found.running is None and enough(snapshot, found)):
        return None
    owner, first = snapshot.owner, grouped(found.failures)[0]
    others = len(found.failures) - first.count
    shown = first.tasks if len(first.tasks) <= _SHOWN else f"{first.tasks[:_SHOWN].rpartition(',')[0]}…"
    code = f" with exit code {first.exit_code}" if first.exit_code else ""
    also = f"{others} more failed otherwise, as its status says" if others else ""
    return Problem(
        REASONS[first.reason],
        f"{first.count} of {owner.spec.count} tasks failed{code} ({'task' if first.count == 1 else 'tasks'} {shown})",
        Where(object=owner.metadata.place),
        "\n".join(each for each in (first.message, also) if each),
        rerun_of(owner, first.reason),
    )


def cannot_change(snapshot: Snapshot, job: Native) -> Problem:
    return Problem(
        reasons.CANNOT_CHANGE,
        f"{job.metadata.name} was made by another version of PinCompute, and goes on as it began",
        Where(object=f"{snapshot.owner.metadata.namespace}/{job.metadata.name}"),
        "its parallelism, deadline and suspension cannot change until it ends",
        f"wait, or begin it anew: kubectl delete job {job.metadata.name}",
    )


def _counts(snapshot: Snapshot, found: Course) -> str:
    spec: JobSetSpec = snapshot.owner.spec
    failed = f", {len(found.failures)} failed" if found.failures else ""
    needed = f", {spec.needed} {'is' if spec.needed == 1 else 'are'} enough" if spec.needed < spec.count else ""
    return f"{len(found.done)} of {spec.count} done{failed}{needed}"


def _again(retried: Sequence[Cause]) -> list[str]:
    """How most of them failed; whether that is wrong, nobody knows before they are given up."""
    if not retried:
        return []
    first = grouped(dict(enumerate(retried)))[0]
    how = f"{first.reason}, exit {first.exit_code}" if first.exit_code else first.reason
    return [f"{len(retried)} failed and {'is' if len(retried) == 1 else 'are'} tried again ({how})"]


def memory_of(spec: JobSetSpec) -> str:
    """What each task last had."""
    return str(next((each.memory for each in reversed(spec.attempts) if each.memory), spec.memory or LEAST_MEMORY))


def rerun_of(owner: PinterestJobSet, reason: str) -> str:
    """What to type to run again what failed so; what never began would not begin another time."""
    name = owner.metadata.name
    if reason == reasons.COMMAND_NOT_FOUND.code:
        return "correct command in the file, and: pin deploy FILE"
    if reason == reasons.OUT_OF_MEMORY.code:
        return f"pin rerun {name} --reason {reason} --memory {binary(amount(memory_of(owner.spec)) * 2)}"
    return f"pin rerun {name}"
