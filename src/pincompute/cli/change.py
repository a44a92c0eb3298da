"""What all verbs that change a workload share: the edit is made and told, and followed to its goal like a deploy."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from pincompute.api.account import Changed
from pincompute.api.change import Change
from pincompute.base.clock import SystemClock
from pincompute.cli.follow import Timer, follow
from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect
from pincompute.cli.word import word

F = TypeVar("F", bound=Callable[..., Any])


def followed(command: F) -> F:
    """The options of everything that is followed to its goal; the command gets them as `patience`, in seconds."""

    @wraps(command)
    def gathered(timeout: float, *, no_wait: bool, **others: Any) -> Any:
        return command(patience=None if no_wait else timeout, **others)

    timeout = click.option("--timeout", default=120.0, help="Seconds to follow it at most.", show_default=True)
    no_wait = click.option("--no-wait", is_flag=True, help="Do it, and do not follow.")
    return no_wait(timeout(gathered))  # type: ignore[return-value]


def myself() -> str:
    """As this person is called here."""
    try:
        return getpass.getuser()[:64]
    except (KeyError, OSError):
        return ""


def make(target: Target, said: str, change: Change, patience: float | None) -> None:
    """One edit, to its end."""
    asyncio.run(_make(target, said, change, patience))


async def _make(target: Target, said: str, change: Change, patience: float | None) -> None:
    timer = Timer.start(SystemClock(), patience or 0.0)
    async with connect(target) as platform:
        changed = await edited(platform, target.project, said, change)
        if changed.written and patience is not None:
            running = await follow(platform, changed.summary, timer)
            click.echo(f"{running.label}  {running.message}")


async def edited(platform: Port, project: str, said: str, change: Change) -> Changed:
    """Told as soon as it is written; what follows from it is on its own lines."""
    asked = word(said)
    if asked.kind:
        asked.must_be((await platform.find(project, asked.name)).kind)
    changed = await platform.change(project, asked.name, change)
    first, *more = changed.said
    click.echo(f"{changed.summary.label}  {first}")
    for each in more:
        click.echo(f"  {each}")
    return changed
