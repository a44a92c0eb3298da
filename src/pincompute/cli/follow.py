"""Follows a workload to its goal: prints each milestone, and refuses as soon as the goal cannot be reached."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import click

from pincompute.api.logs import LogQuery
from pincompute.api.status import READY, SUCCEEDED
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import (
    CRASH_LOOP,
    IMAGE_PULL_FAILED,
    INTERNAL,
    KILLED,
    OUT_OF_MEMORY,
    PROBE_FAILED,
    PROGRAM_FAILED,
    REASONS,
    TIMED_OUT,
    WORKLOAD_UNKNOWN,
)
from pincompute.cli.exit_codes import INTERRUPTED
from pincompute.cli.log_formatter import LogFormatter
from pincompute.cli.platform_client import PlatformClient
from pincompute.objects.image import nearest_image

MILESTONES = ("scheduled", "started")
LAST_LOG_LINES = 20
_MAX_PULL_BACKOFF = "5 minutes"
"""Longest time after which the kubelet tries to pull an image again."""
_TERMINATED_REASONS = {each.code for each in (CRASH_LOOP, KILLED, OUT_OF_MEMORY, PROBE_FAILED, PROGRAM_FAILED)}
"""Reasons of a workload whose program has terminated."""


class FollowTimer(NamedTuple):
    """Timeout of a command, counted from its beginning, so that a slow submission counts."""

    clock: Clock
    started: float
    timeout_s: float

    @classmethod
    def start(cls, clock: Clock, timeout_s: float) -> FollowTimer:
        return cls(clock, clock.monotonic(), timeout_s)

    @property
    def elapsed_s(self) -> float:
        return self.clock.monotonic() - self.started

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.timeout_s - self.elapsed_s)


async def follow_to_goal(
    platform: PlatformClient, submitted: WorkloadSummary, timer: FollowTimer, *, until_finished: bool = False
) -> WorkloadSummary:
    """Print milestones on one line; return at the goal, and refuse where it cannot be reached.

    With `until_finished` a failure is a result too: a rerun reports on its own tasks, though others have failed.
    An interrupt ends the command, and the workload continues.
    """
    click.echo(submitted.label, nl=False, err=True)
    print_part = partial(click.echo, nl=False, err=True)
    try:
        async with aclosing(platform.follow(submitted.project, submitted.name)) as summaries:
            return await await_goal(
                platform,
                submitted,
                timer,
                summaries,
                lambda step: print_part(f"  {step}"),
                until_finished=until_finished,
            )
    except asyncio.CancelledError:
        print_part(f"\n{submitted.name} continues in the background        see: pin get {submitted.name}")
        raise SystemExit(INTERRUPTED) from None
    finally:
        click.echo(err=True)


async def await_goal(  # noqa: PLR0913  (the workload, its updates, and the receiver of its steps)
    platform: PlatformClient,
    submitted: WorkloadSummary,
    timer: FollowTimer,
    summaries: AsyncIterator[WorkloadSummary],
    add_step: Callable[[str], None],
    *,
    until_finished: bool = False,
) -> WorkloadSummary:
    """Report each milestone as it is reached. Summaries of earlier generations than the submitted are skipped."""
    milestones = (*MILESTONES, submitted.goal.lower())
    reported = 0
    latest = submitted
    try:
        async with asyncio.timeout(timer.remaining_s):
            async for summary in summaries:
                if summary.generation < submitted.generation:
                    continue
                latest, seconds, reached = summary, timer.elapsed_s, _milestones_reached(summary)
                for milestone in milestones[reported:reached]:
                    add_step(f"{milestone} {seconds:.1f} s")
                reported = max(reported, reached)
                if latest.done or (latest.failed and until_finished):
                    return latest
                if latest.failed:
                    break
            else:
                raise Refused(Problem(WORKLOAD_UNKNOWN, f"{submitted.label} was deleted while it was followed"))
    except TimeoutError:
        prefix = f"not {submitted.goal.lower()} after {timer.timeout_s:.0f} s: "
        raise Refused(await _failure_problem(platform, latest, prefix)) from None
    raise Refused(await _failure_problem(platform, latest, ""))


def _milestones_reached(summary: WorkloadSummary) -> int:
    """Count the milestones that all replicas have passed; the goal is the last."""
    progress = summary.progress
    if summary.done:
        return len(MILESTONES) + 1
    counts = (progress.scheduled, progress.started)
    return next((index for index, count in enumerate(counts) if not 0 < progress.wanted <= count), len(counts))


async def _failure_problem(platform: PlatformClient, summary: WorkloadSummary, prefix: str) -> Problem:
    """Explain a failure by its cause, the last log lines and the next step."""
    reason = REASONS.get(summary.reason, INTERNAL)
    notes = [f"| {line}" for line in await _last_log_lines(platform, summary)]
    if summary.serving_note:
        notes.append(summary.serving_note)
    next_ = summary.next
    if reason is IMAGE_PULL_FAILED:
        images = await platform.list_images()
        if summary.image in images:
            notes.append(f"{summary.image} has been loaded since; the node pulls it again within {_MAX_PULL_BACKOFF}")
            next_ = f"pin {'restart' if summary.goal == READY else 'get'} {summary.name}"
        elif nearest := nearest_image(summary.image, images):
            notes.append(f"did you mean {nearest}?")
    is_final = summary.failed
    return Problem(
        reason if is_final else TIMED_OUT,
        prefix + (summary.message or "not reconciled by the operator yet"),
        Where(object=f"{summary.project}/{summary.label}"),
        "\n".join(notes),
        next_ or (reason.remedy if is_final else f"pin why {summary.name}"),
    )


async def _last_log_lines(platform: PlatformClient, summary: WorkloadSummary) -> list[str]:
    """Return the last lines of the replica that the next step names, of the one that failed, or else of the youngest.

    Replicas of the previous revision keep serving during a rollout, and their logs say nothing about its failure.
    """
    try:
        formatter = LogFormatter(summary.name)
        terminated = summary.reason in _TERMINATED_REASONS or summary.goal == SUCCEEDED
        named = re.match(rf"pin logs {re.escape(summary.name)}/([\w-]+)", summary.next)
        query = LogQuery(
            tail=LAST_LOG_LINES,
            replica=named[1] if named else "",
            select_run="ended" if terminated else "youngest",
        )
        async with aclosing(platform.logs(summary.project, summary.name, query)) as items:
            lines = [line for item in [each async for each in items] for line in formatter.format_item(item)]
            return [click.unstyle(line) for line in lines]
    except Refused:
        # There may be no logs, which is not the failure to report.
        return []
