"""`pin get --watch`: on a terminal what there is, drawn anew at each change; in a pipe a line for each change."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import click
import msgspec

from pincompute.api.summary import Sight, Summary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.base.reasons import WORKLOAD_UNKNOWN
from pincompute.cli.looking import Looking, rows
from pincompute.cli.port import Port
from pincompute.cli.portrait import portrait
from pincompute.cli.target import Target, connect

FORMS = ("", "wide", "json")
GONE = "Gone"
"""Said in the place of a reason."""
_LEAST = (20, 11, 7, 18)
"""Letters of a line's columns: who comes later is not known when the first is told."""


class Screen:
    """A terminal, of which the last few lines are ours."""

    def __init__(self, *, err: bool = False) -> None:
        self._drawn = 0
        self._err = err

    def draw(self, text: str) -> None:
        """In the place of what was drawn before; a line that would be broken could not be drawn over."""
        width, height = shutil.get_terminal_size()
        lines = [line[:width] for line in text.splitlines()][: max(1, height - 1)]
        up = f"\033[{self._drawn}A\033[J" if self._drawn else ""
        click.echo(up + "\n".join(lines), color=True, err=self._err)
        self._drawn = len(lines)


class Lines:
    """One for each change, for whoever reads them from a pipe."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._told: dict[str, str] = {}
        self._begun = False

    def tell(self, changed: Sequence[Summary]) -> None:
        """What is to be seen of it may be as it was."""
        if self._output == "json":
            for each in changed:
                click.echo(msgspec.json.encode(each))
            return
        head, *lines = rows(changed, wide=self._output == "wide", least=_LEAST).splitlines()
        if not self._begun:
            click.echo(head)
        self._begun = True
        for each, line in zip(changed, lines, strict=True):
            if line != self._told.get(each.name):
                click.echo(line)
            self._told[each.name] = line


async def look_on(target: Target, looking: Looking) -> None:
    """Until somebody ends it."""
    screen = Screen() if sys.stdout.isatty() and looking.output != "json" else None
    lines = Lines(looking.output)
    there: dict[str, Summary] = {}
    async with connect(target) as platform, aclosing(platform.watch(target.project)) as sights:
        first = await anext(sights)
        looking.must_be_among(target.project, {each.name: each for each in first.now})
        async for sight in _all(first, sights):
            changed = _changed(looking, there, sight)
            if screen is None:
                lines.tell(changed)
            elif changed or sight is first:
                screen.draw(await _picture(platform, target.project, looking, there))


async def _all(first: Sight, others: AsyncGenerator[Sight]) -> AsyncGenerator[Sight]:
    yield first
    async for each in others:
        yield each


def _changed(looking: Looking, there: dict[str, Summary], sight: Sight) -> list[Summary]:
    """What is to be told of it; what is there is kept up with."""
    wanted = {each.name: each for each in sight.now if looking.wants(each)}
    lost = sorted({*sight.gone, *(each.name for each in sight.now if each.name not in wanted)} & there.keys())
    gone = [msgspec.structs.replace(there.pop(name), reason=GONE, ready=0) for name in lost if name in sight.gone]
    for name in lost:
        there.pop(name, None)
    there.update(wanted)
    return [*wanted.values(), *gone]


async def _picture(platform: Port, project: str, looking: Looking, there: dict[str, Summary]) -> str:
    if not looking.alone:
        return rows([there[name] for name in sorted(there)], wide=looking.output == "wide")
    name = looking.asked[0].name
    try:
        return portrait(await platform.find(project, name), SystemClock().now())
    except Refused as refused:
        if refused.problems[0].reason is not WORKLOAD_UNKNOWN:
            raise
        return f"{name} is gone"
