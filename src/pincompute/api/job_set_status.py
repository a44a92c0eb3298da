"""What the operator says of a PinterestJobSet, and remembers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.status import Status
from pincompute.api.wire import Strict


class Failure(Strict, frozen=True):
    """Tasks that failed in the same way."""

    reason: Annotated[str, Meta(description="Why, such as OutOfMemory.", max_length=64)]
    exit_code: Annotated[int, Meta(description="What the program ended with, such as 137; 0 where nobody saw it.")] = 0
    message: Annotated[str, Meta(description="The last line of one of them.", max_length=256)] = ""
    tasks: Annotated[str, Meta(description="Which tasks, such as 17,88,203-204.", max_length=65_536)] = ""
    count: Annotated[int, Meta(description="How many they are, such as 4.")] = 0


class AttemptStatus(Strict, frozen=True):
    """What became of one attempt."""

    number: Annotated[int, Meta(description="The number after the dot of resize@1.2.")]
    tasks: Annotated[str, Meta(description="The tasks that it runs, such as 0-499.", max_length=65_536)] = ""
    began: Annotated[str, Meta(description="When, such as 2026-01-31T12:00:00Z.", max_length=32)] = ""
    ended: Annotated[str, Meta(description="When; empty while it runs.", max_length=32)] = ""
    runtime: Annotated[int, Meta(description="The runtime that it began with, such as 42.")] = 0
    done: Annotated[int, Meta(description="Tasks that it did, such as 493.")] = 0
    failed: Annotated[int, Meta(description="Tasks that failed in it, such as 7.")] = 0
    reason: Annotated[str, Meta(description="How it ended, such as Succeeded.", max_length=64)] = ""


class JobSetStatus(Status, frozen=True):
    """How much of the work is done; it is remembered when everything that did it is gone."""

    work: Annotated[str, Meta(description="The digest of what runs: another is a new revision.", max_length=64)] = ""
    tasks: Annotated[int, Meta(description="Tasks that there are, such as 500.")] = 0
    done: Annotated[int, Meta(description="Tasks that are done, such as 493.")] = 0
    failed: Annotated[int, Meta(description="Tasks that failed and are not done again, such as 7.")] = 0
    running: Annotated[int, Meta(description="Tasks that run just now, such as 20.")] = 0
    retrying: Annotated[int, Meta(description="Tasks that failed and are tried again just now, such as 2.")] = 0
    completed: Annotated[str, Meta(description="The tasks that are done, such as 0-16,18-499.", max_length=65_536)] = ""
    failures: Annotated[list[Failure], Meta(description="The tasks that failed, by reason.", max_length=32)] = []
    attempts: Annotated[list[AttemptStatus], Meta(description="Every attempt of this revision.", max_length=32)] = []
