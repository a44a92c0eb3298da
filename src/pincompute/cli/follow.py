"""A deploy, followed to its end: each milestone as it is reached, and failure as soon as it is certain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import click

from pincompute.api.logs import Wanted
from pincompute.api.status import SUCCEEDED
from pincompute.api.summary import Summary
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import (
    CRASH_LOOP,
    IMAGE_PULL_FAILED,
    INTERNAL,
    KILLED,
    NOT_IN_TIME,
    OUT_OF_MEMORY,
    PROBE_FAILED,
    PROGRAM_FAILED,
    REASONS,
    WORKLOAD_UNKNOWN,
)
from pincompute.cli.port import Port
from pincompute.cli.told import Told
from pincompute.objects.image import nearest

MILESTONES = ("scheduled", "started")
LAST_LINES = 20
_ENDED = {each.code for each in (CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROBE_FAILED, PROGRAM_FAILED)}
"""Why a program is no more."""
INTERRUPTED = 130


class Timer(NamedTuple):
    """How long something is followed, counted from when it was asked for."""

    clock: Clock
    began: float
    patience: float

    @classmethod
    def start(cls, clock: Clock, patience: float) -> Timer:
        return cls(clock, clock.monotonic(), patience)

    @property
    def seconds(self) -> float:
        return self.clock.monotonic() - self.began


async def follow(port: Port, submitted: Summary, timer: Timer, *, to_its_end: bool = False) -> Summary:
    """Print how far it is; return when its goal is reached, refuse when it never will be.

    To its end is also where some of it has failed: whoever asked for a part of it looks at that part. Whoever
    interrupts it leaves, and it goes on.
    """
    click.echo(submitted.label, nl=False, err=True)
    tell = partial(click.echo, nl=False, err=True)
    try:
        async with aclosing(port.follow(submitted.project, submitted.name)) as summaries:
            return await to_goal(
                port, submitted, timer, summaries, lambda words: tell(f"  {words}"), to_its_end=to_its_end
            )
    except asyncio.CancelledError:
        tell(f"\n{submitted.name} goes on by itself        see: pin get {submitted.name}")
        raise SystemExit(INTERRUPTED) from None
    finally:
        click.echo(err=True)


async def to_goal(  # noqa: PLR0913  (what is followed, how, and who is told)
    port: Port,
    submitted: Summary,
    timer: Timer,
    summaries: AsyncIterator[Summary],
    tell: Callable[[str], None],
    *,
    to_its_end: bool = False,
) -> Summary:
    """Each milestone is told as it is reached, by what is known of it as it was submitted, or changed later."""
    milestones = (*MILESTONES, submitted.goal.lower())
    told = 0
    latest = submitted
    try:
        async with asyncio.timeout(timer.patience):
            async for summary in summaries:
                if summary.generation < submitted.generation:
                    continue
                latest, seconds, reached = summary, timer.seconds, _reached(summary)
                for milestone in milestones[told:reached]:
                    tell(f"{milestone} {seconds:.1f} s")
                told = max(told, reached)
                if latest.done or (latest.failed and to_its_end):
                    return latest
                if latest.failed:
                    break
            else:
                raise Refused(Problem(WORKLOAD_UNKNOWN, f"{submitted.label} was deleted while it was followed"))
    except TimeoutError:
        raise Refused(
            await _failure(port, latest, f"not {submitted.goal.lower()} after {timer.patience:.0f} s: ")
        ) from None
    raise Refused(await _failure(port, latest, ""))


def _reached(summary: Summary) -> int:
    """How many milestones every copy has passed; the last one is the goal itself."""
    progress = summary.progress
    if summary.done:
        return len(MILESTONES) + 1
    counts = (progress.scheduled, progress.started)
    return next((index for index, count in enumerate(counts) if not 0 < progress.wanted <= count), len(counts))


async def _failure(port: Port, summary: Summary, prefix: str) -> Problem:
    """What is known of it: the cause, the last lines it printed, and what to type next."""
    reason = REASONS.get(summary.reason, INTERNAL)
    notes = [f"| {line}" for line in await _last_lines(port, summary)]
    if reason is IMAGE_PULL_FAILED and (near := nearest(summary.image, await port.images())):
        notes.append(f"did you mean {near}?")
    certain = summary.failed
    return Problem(
        reason if certain else NOT_IN_TIME,
        prefix + (summary.message or "the operator has not looked at it yet"),
        Where(object=f"{summary.project}/{summary.label}"),
        "\n".join(notes),
        summary.next or (reason.mend if certain else f"pin why {summary.name}"),
    )


async def _last_lines(port: Port, summary: Summary) -> list[str]:
    """Of the copy that it is about: what a former revision prints, which serves on, says nothing of it."""
    try:
        told = Told(summary.name)
        ended = summary.reason in _ENDED or summary.goal == SUCCEEDED
        wanted = Wanted(tail=LAST_LINES, only="ended" if ended else "youngest")
        async with aclosing(port.logs(summary.project, summary.name, wanted)) as said:
            return [click.unstyle(line) for each in [each async for each in said] for line in told.lines(each)]
    except Refused:
        # There may be none at all, and that is not what went wrong.
        return []
