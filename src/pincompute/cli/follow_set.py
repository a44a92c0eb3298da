"""Follows all workloads of a set: on a terminal in lines that are redrawn, in a pipe with one line for each step."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol

import click

from pincompute.api.receipt import SubmissionOutcome
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.problem import Problem, Refused
from pincompute.cli.desk_client import delivery_pending
from pincompute.cli.exit_codes import INTERRUPTED
from pincompute.cli.follow import FollowTimer, await_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.watch import Screen

ProgressUpdate = WorkloadSummary | Refused | None
"""A new state, an error of the watch, or None for a deleted workload."""
UpdateQueues = Mapping[tuple[str, str], asyncio.Queue[ProgressUpdate]]
"""By project and name."""
FollowResult = WorkloadSummary | Refused


class ProgressBoard(Protocol):
    def add_step(self, label: str, step: str) -> None: ...


class ProgressLines:
    """Prints one line for each step of each workload."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._width = max(map(len, labels))

    def add_step(self, label: str, step: str) -> None:
        click.echo(f"{label.ljust(self._width)}  {step}", err=True)


class ProgressTable:
    """Draws one line for each workload on a terminal, which grows with each step."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._width = max(map(len, labels))
        self._steps = dict.fromkeys(labels, "")
        self._screen = Screen(err=True)
        self._draw()

    def add_step(self, label: str, step: str) -> None:
        self._steps[label] += f"  {step}"
        self._draw()

    def _draw(self) -> None:
        self._screen.redraw("\n".join(f"{label.ljust(self._width)}{steps}" for label, steps in self._steps.items()))


def progress_board(labels: Sequence[str]) -> ProgressBoard:
    """Return lines for a set that is longer than the terminal, which could not be redrawn."""
    fits = len(labels) < shutil.get_terminal_size().lines
    return ProgressTable(labels) if sys.stderr.isatty() and fits else ProgressLines(labels)


async def follow_set(
    platform: PlatformClient, outcomes: Sequence[SubmissionOutcome], timer: FollowTimer
) -> list[FollowResult]:
    """Return a result for each workload, in the order of the set. An interrupt ends the command; the set continues."""
    board = progress_board([_label(each) for each in outcomes])
    updates = {(each.receipt.project, each.receipt.name): asyncio.Queue[ProgressUpdate]() for each in outcomes}
    projects = sorted({project for project, _ in updates})
    watches = [asyncio.create_task(_watch_project(platform, each, updates)) for each in projects]
    try:
        return list(await asyncio.gather(*(_follow_one(platform, each, timer, updates, board) for each in outcomes)))
    except asyncio.CancelledError:
        click.echo("\nall workloads continue in the background        see: pin get", err=True)
        raise SystemExit(INTERRUPTED) from None
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _follow_one(
    platform: PlatformClient,
    outcome: SubmissionOutcome,
    timer: FollowTimer,
    updates: UpdateQueues,
    board: ProgressBoard,
) -> FollowResult:
    label, receipt = _label(outcome), outcome.receipt
    try:
        submitted = accepted_summary(outcome)
        async with aclosing(_summaries(updates[receipt.project, receipt.name])) as summaries:
            return await await_goal(platform, submitted, timer, summaries, partial(board.add_step, label))
    except Refused as refused:
        board.add_step(label, refused.problems[0].reason.code)
        return refused


def accepted_summary(outcome: SubmissionOutcome) -> WorkloadSummary:
    """Return the workload in its cluster; refuse one that was refused there, or is not delivered yet."""
    if outcome.summary is not None:
        return outcome.summary
    errors = outcome.receipt.errors
    raise Refused(*map(Problem.from_json, errors)) if errors else Refused(delivery_pending(outcome.receipt))


def _label(outcome: SubmissionOutcome) -> str:
    return outcome.summary.label if outcome.summary else outcome.receipt.name


async def _watch_project(platform: PlatformClient, project: str, updates: UpdateQueues) -> None:
    """Distribute one watch of a project to all its followed workloads."""
    try:
        async with aclosing(platform.watch(project)) as changes:
            async for change in changes:
                for summary in change.current:
                    if queue := updates.get((project, summary.name)):
                        queue.put_nowait(summary)
                for name in change.deleted:
                    if queue := updates.get((project, name)):
                        queue.put_nowait(None)
    except Refused as refused:
        for (queue_project, _), queue in updates.items():
            if queue_project == project:
                queue.put_nowait(refused)


async def _summaries(queue: asyncio.Queue[ProgressUpdate]) -> AsyncGenerator[WorkloadSummary]:
    """End when the workload is deleted."""
    while True:
        match await queue.get():
            case None:
                return
            case Refused() as refused:
                raise refused
            case summary:
                yield summary
