"""A set, followed to the ends of all of it: on a terminal drawn anew at each step, in a pipe a line for each."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol

import click

from pincompute.api.receipt import Outcome
from pincompute.api.summary import Summary
from pincompute.base.problem import Problem, Refused
from pincompute.cli.desk import on_its_way
from pincompute.cli.follow import INTERRUPTED, Timer, to_goal
from pincompute.cli.port import Port
from pincompute.cli.watch import Screen

News = Summary | Refused | None
"""How it is; that it cannot be told; or that it is gone."""
Ending = Summary | Refused


class Board(Protocol):
    def tell(self, label: str, words: str) -> None: ...


class Lines:
    """For a pipe: a line for each step of each."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._width = max(map(len, labels))

    def tell(self, label: str, words: str) -> None:
        click.echo(f"{label.ljust(self._width)}  {words}", err=True)


class Drawn:
    """For a terminal: a line for each, which grows."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._width = max(map(len, labels))
        self._rows = dict.fromkeys(labels, "")
        self._screen = Screen(err=True)
        self._draw()

    def tell(self, label: str, words: str) -> None:
        self._rows[label] += f"  {words}"
        self._draw()

    def _draw(self) -> None:
        self._screen.draw("\n".join(f"{label.ljust(self._width)}{told}" for label, told in self._rows.items()))


def board(labels: Sequence[str]) -> Board:
    """What is longer than the terminal could not be drawn over."""
    fits = len(labels) < shutil.get_terminal_size().lines
    return Drawn(labels) if sys.stderr.isatty() and fits else Lines(labels)


async def follow_all(port: Port, outcomes: Sequence[Outcome], timer: Timer) -> list[Ending]:
    """What became of each, in the order of the set. Whoever interrupts it leaves, and all of it goes on."""
    shown = board([_label(each) for each in outcomes])
    news = {(each.receipt.project, each.receipt.name): asyncio.Queue[News]() for each in outcomes}
    looking = [asyncio.create_task(_look(port, each, news)) for each in sorted({project for project, _ in news})]
    try:
        return list(await asyncio.gather(*(_one(port, each, timer, news, shown) for each in outcomes)))
    except asyncio.CancelledError:
        click.echo("\nall of it goes on by itself        see: pin get", err=True)
        raise SystemExit(INTERRUPTED) from None
    finally:
        for each in looking:
            each.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


async def _one(
    port: Port, outcome: Outcome, timer: Timer, news: Mapping[tuple[str, str], asyncio.Queue[News]], shown: Board
) -> Ending:
    label, receipt = _label(outcome), outcome.receipt
    try:
        submitted = taken(outcome)
        async with aclosing(_summaries(news[receipt.project, receipt.name])) as summaries:
            return await to_goal(port, submitted, timer, summaries, partial(shown.tell, label))
    except Refused as refused:
        shown.tell(label, refused.problems[0].reason.code)
        return refused


def taken(outcome: Outcome) -> Summary:
    """What its cluster has of it."""
    if outcome.summary is not None:
        return outcome.summary
    errors = outcome.receipt.errors
    raise Refused(*map(Problem.of, errors)) if errors else Refused(on_its_way(outcome.receipt))


def _label(outcome: Outcome) -> str:
    return outcome.summary.label if outcome.summary else outcome.receipt.name


async def _look(port: Port, project: str, news: Mapping[tuple[str, str], asyncio.Queue[News]]) -> None:
    """At all of a project by one stream, however many there are."""
    try:
        async with aclosing(port.watch(project)) as sights:
            async for sight in sights:
                for each in sight.now:
                    if queue := news.get((project, each.name)):
                        queue.put_nowait(each)
                for name in sight.gone:
                    if queue := news.get((project, name)):
                        queue.put_nowait(None)
    except Refused as refused:
        for (of, _), queue in news.items():
            if of == project:
                queue.put_nowait(refused)


async def _summaries(news: asyncio.Queue[News]) -> AsyncGenerator[Summary]:
    """Until it is gone."""
    while True:
        match await news.get():
            case None:
                return
            case Refused() as refused:
                raise refused
            case summary:
                yield summary
