"""`pin show`: description, conditions, copies, natives, events and history of a workload, in one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import click
import msgspec

from pincompute.api.account import Account, CopyAccount, EventAccount, NativeAccount, RevisionAccount
from pincompute.api.kinds import WORKLOADS
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.cli.ages import age
from pincompute.cli.offered import workload_names
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.portrait import portrait
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import word

_COPIES = 20
"""Lines of copies: of a batch there may be thousands, and those that are not well come first."""
_WELL = ("Ready", "Running", "Succeeded")


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="For programs.")
@to_platform
def show(target: Target, workload: str, output: str | None) -> None:
    """Show all that is known of a workload."""
    account = asyncio.run(_account(target, workload))
    if output == "json":
        click.echo(as_json(account), nl=False)
    elif output == "yaml":
        click.echo(as_yaml(account), nl=False)
    else:
        click.echo(told(account, SystemClock().now()), nl=False)


async def _account(target: Target, said: str) -> Account:
    asked = word(said)
    async with connect(target) as platform:
        account = await platform.account(target.project, asked.name)
    asked.must_be(account.summary.kind)
    return account


def told(account: Account, now: datetime) -> str:
    owner = msgspec.convert(account.resource, WORKLOADS[account.summary.kind])
    sections = (
        ("", portrait(owner, now).splitlines()),
        ("conditions", _conditions(owner, now)),
        ("copies", list(_copies(account.copies, now))),
        ("became", _natives(account.natives, now)),
        ("events", _events(account.events, now)),
        ("history", list(_history(account.history, now))),
    )
    return "\n".join(_section(head, lines) for head, lines in sections if lines)


def _section(head: str, lines: Sequence[str]) -> str:
    if not head:
        return "".join(f"{line}\n" for line in lines)
    return "".join(f"{line}\n" for line in (head, *(f"  {line}" for line in lines)))


def _conditions(owner: Workload, now: datetime) -> list[str]:
    rows = [
        (each.type, each.status, each.reason, f"since {age(each.last_transition_time, now)}", each.message)
        for each in owner.status.conditions
    ]
    return table(rows, left=5).splitlines() if rows else []


def _copies(copies: Sequence[CopyAccount], now: datetime) -> Iterator[str]:
    if not copies:
        return
    worst = sorted(copies, key=lambda each: (each.state in _WELL, each.name))
    rows = [
        (each.name, each.node or "-", each.state, str(each.restarts), age(each.since, now)) for each in worst[:_COPIES]
    ]
    yield from table([("NAME", "NODE", "STATE", "RESTARTS", "AGE"), *rows], left=3).splitlines()
    if len(copies) > _COPIES:
        yield f"and {len(copies) - _COPIES} more"


def _natives(natives: Sequence[NativeAccount], now: datetime) -> list[str]:
    rows = [(each.name, age(each.since, now)) for each in natives]
    return table(rows, left=1).splitlines() if rows else []


def _events(events: Sequence[EventAccount], now: datetime) -> list[str]:
    rows = [
        (
            f"{age(each.last, now)} ago",
            f"x{each.count}" if each.count > 1 else "",
            "!" if each.warning else "",
            each.about,
            f"{each.reason}: {each.note}",
        )
        for each in events
    ]
    return table(rows, left=5).splitlines() if rows else []


def _history(history: Sequence[RevisionAccount], now: datetime) -> Iterator[str]:
    """Each in one line where it fits; of the first that is known nothing is known to have changed."""
    for each in history:
        runtime = f"  runtime {each.runtime}" if each.runtime else ""
        first, *more = each.changes or ["as it was first recorded" if each is history[0] else "nothing that runs"]
        yield f"@{each.number}  {age(each.at, now)} ago{runtime}  {first}"
        yield from (f"    {change}" for change in more)
