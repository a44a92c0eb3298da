"""Faults of work that comes to an end: batches, runs at certain times, and training."""

from __future__ import annotations

from pincompute.base import reasons
from pincompute.planning.faults import harm
from pincompute.planning.faults.fault import ENDED, NO_ROOM, Fault

_AT_TIMES = ("PinterestCronJob",)
_TRAINS = ("PinterestTrainingJob",)

WORK: tuple[Fault, ...] = (
    Fault(
        "fails",
        "every task fails",
        (reasons.TASK_FAILED, *ENDED),
        harm.runs("sh", "-c", "echo bad header; exit 3"),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "too-short",
        "its deadline is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        harm.both(harm.runs("sleep", "600"), harm.fields(deadline_seconds=1)),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "task-too-short",
        "the deadline of a task is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        harm.both(harm.runs("sleep", "600"), harm.fields(task_deadline_seconds=1)),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "run-fails",
        "its next run, which is now, fails",
        ENDED,
        harm.now(harm.runs("sh", "-c", "echo the ledger is locked; exit 5")),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-cannot-begin",
        "its next run, which is now, has a command that is not in the image",
        (reasons.COMMAND_NOT_FOUND,),
        harm.now(harm.runs("/no/such/program")),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-has-no-image",
        "its next run, which is now, has an image that is nowhere",
        (reasons.IMAGE_PULL_FAILED,),
        harm.now(harm.image(harm.tagged)),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-too-long",
        "its next run, which is now, takes longer than it may",
        (reasons.DEADLINE_EXCEEDED,),
        harm.now(harm.both(harm.runs("sleep", "600"), harm.fields(deadline_seconds=1))),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-has-no-room",
        "its next run, which is now, needs more than any node has",
        NO_ROOM,
        harm.now(harm.asks(cpu="4000")),
        _AT_TIMES,
    ),
    Fault(
        "run-overlaps",
        "a run is due while the one before still goes",
        (reasons.RUN_OVERLAPS,),
        harm.both(harm.runs("sleep", "600"), harm.fields(schedule="* * * * *", overlap="forbid")),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "copy-fails",
        "a copy that trains fails",
        (reasons.COPY_FAILED, *ENDED),
        harm.runs("sh", "-c", "echo the loss is not a number; exit 6"),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "copy-cannot-begin",
        "the command of those that train is not in the image",
        (reasons.COMMAND_NOT_FOUND,),
        harm.runs("/no/such/program"),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "copies-hungry",
        "those that train need more memory than they have",
        (reasons.OUT_OF_MEMORY,),
        harm.both(harm.runs("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"), harm.asks(memory="32Mi")),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "never-together",
        "only some of those that train find room",
        (reasons.GANG_SPLIT, *NO_ROOM),
        harm.both(harm.runs("sleep", "600"), harm.crowded),
        _TRAINS,
        runs=True,
    ),
)
