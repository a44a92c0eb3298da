"""What came of a training job. Kubeflow says only what became of the one that leads: here every copy counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from pincompute.api.status import SUCCEEDED, condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import REASONS
from pincompute.objects.quantity import amount, binary
from pincompute.planning.pods.pod import LEAST_MEMORY
from pincompute.planning.snapshot import Container, Native, Pod, Snapshot, Terminated
from pincompute.planning.training.gang import INDEX, ROLE, Gang, awaited, called
from pincompute.planning.why.starts import NEVER_STARTED, not_begun
from pincompute.planning.why.words import last_line, some

UNSEEN = "a copy ended badly"
"""What is said where it is not seen which."""


class Outcome(NamedTuple):
    """It trains, as long as it has not ended."""

    ended: bool = False
    problem: Problem | None = None
    """Why it has failed; it has succeeded without one."""

    @property
    def succeeded(self) -> bool:
        return self.ended and self.problem is None


def outcome(snapshot: Snapshot, job: Native | None, found: Gang) -> Outcome:
    """As it was told once, or else as it is seen now."""
    owner: PinterestTrainingJob = snapshot.owner
    if owner.status.ended:
        before = remembered(owner)
        # Kubeflow may be heard before the copy that it speaks of.
        late = _blamed(snapshot, job) if before and job and before.what == UNSEEN else None
        return Outcome(True, late or before)
    if job is None:
        return Outcome()
    needed = _without_the_leader(snapshot, job, awaited(owner.spec, found))
    done = {each.seat for each in needed.members if each.done}
    begun = bool(needed.seats) or bool(job.says("Succeeded"))
    if begun and all(seat in done for seat in needed.seats):
        return Outcome(True)
    problem = _failed(snapshot, job) or (_after_the_leader(snapshot, job, needed) if job.says("Succeeded") else None)
    return Outcome(problem is not None, problem)


def _without_the_leader(snapshot: Snapshot, job: Native, needed: Gang) -> Gang:
    """What Kubeflow says of the one that leads holds, also when its pod is gone."""
    if not job.says("Succeeded"):
        return needed
    led = (snapshot.owner.spec.leader, 0)
    return Gang(
        tuple(seat for seat in needed.seats if seat != led), tuple(each for each in needed.members if each.seat != led)
    )


def deadline(owner: PinterestTrainingJob, job: Native | None) -> datetime | None:
    """When it must have ended: Kubeflow looks no more once the one that leads has."""
    seconds = owner.spec.deadline_seconds
    start = job.status.start_time if job else None
    return start + timedelta(seconds=seconds) if start and seconds else None


def said(owner: PinterestTrainingJob, found: Gang) -> str:
    """How many have ended, and how many run."""
    done = sum(each.done for each in found.members)
    running = sum(each.runs for each in found.members)
    if owner.status.ended and not found.members:
        done = owner.status.done
    text = f"{done} of {len(found.seats)} copies have ended well"
    return f"{text}, {running} run" if running else text


def finishing(owner: PinterestTrainingJob, found: Gang) -> str:
    """Whom it still waits for, where the one that leads has ended."""
    leader = found.of(owner.spec.leader).members[:1]
    if not leader or not leader[0].done:
        return ""
    waited = [called(each.seat) for each in awaited(owner.spec, found).members if not each.done]
    return f"the {owner.spec.leader} has ended well, and {some(waited)} not yet" if waited else ""


def remembered(owner: PinterestTrainingJob) -> Problem | None:
    """As its condition tells it: what it was seen by may be gone."""
    before = condition(owner.status.conditions, SUCCEEDED)
    if before is None or before.status == "True":
        return None
    return Problem(
        REASONS.get(before.reason, reasons.COPY_FAILED),
        before.message,
        Where(object=owner.metadata.place),
        next=owner.status.next,
    )


def _failed(snapshot: Snapshot, job: Native) -> Problem | None:
    """As Kubeflow says it, with the copy by which it came."""
    said = job.says("Failed")
    if said is None:
        return None
    if "deadline" in said.message:
        return _too_long(snapshot.owner)
    return _blamed(snapshot, job) or _unseen(snapshot, said.message)


def _after_the_leader(snapshot: Snapshot, job: Native, needed: Gang) -> Problem | None:
    """Kubeflow starts none of the others again by then, and does not look at its deadline."""
    owner: PinterestTrainingJob = snapshot.owner
    end = deadline(owner, job)
    if any(each.failed for each in needed.members):
        return _blamed(snapshot, job) or _unseen(snapshot, "")
    if needed.missing:
        what = f"{some([called(each) for each in needed.missing])} had not ended and is gone"
        note = "the one that leads has ended, so nobody makes it anew"
        return Problem(reasons.COPY_LOST, what, Where(object=owner.metadata.place), note, _anew(owner))
    return _too_long(owner) if end and snapshot.now >= end else None


def _blamed(snapshot: Snapshot, job: Native) -> Problem | None:
    """The first copy that ended badly, also where it is on its way out."""
    owner: PinterestTrainingJob = snapshot.owner
    ended = [(each, *_end(owner, each)) for each in snapshot.pods if each.metadata.controller == job.metadata.uid]
    bad = [(pod, container, end) for pod, container, end in ended if container and end]
    if not bad:
        return None
    pod, container, end = min(bad, key=lambda each: (each[2].finished_at, each[0].metadata.name))
    labels = pod.metadata.labels
    who = f"{labels.get(ROLE, 'copy')} {labels.get(INDEX, '')}".strip()
    where = "" if container.name == owner.main else f" in its container {container.name}"
    if end.reason == "OOMKilled":
        what = f"{who} was ended{where} for want of memory"
        return Problem(reasons.OUT_OF_MEMORY, what, Where(object=owner.metadata.place), next=_with_more(owner))
    if end.reason in NEVER_STARTED:
        told = not_begun(container, end.message)
        what, next_ = f"{who} cannot begin: {told.what}", "correct command in the file, and: pin deploy FILE"
        return Problem(told.reason, what, Where(object=owner.metadata.place), told.note, next_)
    line = last_line(end.message)
    note = f"its last line: {line}" if line else ""
    return Problem(
        reasons.COPY_FAILED,
        f"{who} ended{where} with exit code {end.exit_code}",
        Where(object=owner.metadata.place),
        note,
        _anew(owner),
    )


def _end(owner: PinterestTrainingJob, pod: Pod) -> tuple[Container | None, Terminated | None]:
    """How one ended badly, the one that trains before those beside it."""
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    for each in sorted(containers, key=lambda one: one.name != owner.main):
        end = each.state.terminated or (None if each.ready else each.last_state.terminated)
        if end and end.exit_code:
            return each, end
    return None, None


def _unseen(snapshot: Snapshot, words: str) -> Problem:
    """Nobody is left to tell: what was last said of it is the best that there is."""
    owner: PinterestTrainingJob = snapshot.owner
    before = condition(owner.status.conditions, SUCCEEDED)
    quiet = before is None or before.reason in {reasons.PROGRESSING.code, reasons.SUSPENDED.code}
    what = "copies were started again more often than retries allows" if "backoff" in words else UNSEEN
    note = "" if before is None or quiet else f"before: {before.message}"
    reason = reasons.COPY_FAILED if before is None or quiet else REASONS.get(before.reason, reasons.COPY_FAILED)
    return Problem(reason, what, Where(object=owner.metadata.place), note, _anew(owner))


def _too_long(owner: PinterestTrainingJob) -> Problem:
    what = f"it was not done within {owner.spec.deadline_seconds} seconds"
    return Problem(
        reasons.DEADLINE_EXCEEDED,
        what,
        Where(object=owner.metadata.place),
        next=f"raise deadlineSeconds in the file, and: {_anew(owner)}",
    )


def _anew(owner: PinterestTrainingJob) -> str:
    return f"pin rerun {owner.metadata.name}"


def _with_more(owner: PinterestTrainingJob) -> str:
    """Twice what it had, where all of its copies have the same."""
    spec = owner.spec
    memory = spec.memory or ("" if spec.template else LEAST_MEMORY)
    if not memory or any(role.memory for role in spec.members.values()):
        return f"raise memory in the file, and: {_anew(owner)}"
    return f"{_anew(owner)} --memory {binary(amount(memory) * 2)}"
