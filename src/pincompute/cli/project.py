"""`pin project`: whose a project is, who may what in it, what it may use and does, and what waits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from pincompute.api.membership import Review
from pincompute.api.tenancy import Held, Tenancy, Tenant
from pincompute.base.clock import SystemClock
from pincompute.cli.ages import age
from pincompute.cli.offered import project_names
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform

BAR = 20
"""Letters of a bar."""
NOTHING = ("nothing used",)
SHOWN = 10
"""Workloads that wait, or are on their way, before they are only counted."""


@click.command()
@click.argument("name", required=False, shell_complete=project_names)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="For programs.")
@to_platform
def project(target: Target, name: str | None, output: str | None) -> None:
    """Show a project: who may what, what it may use, what waits.

    Without a NAME, list those that you may look at.
    """
    found = asyncio.run(_one(target, name) if name else _all(target))
    if output:
        click.echo({"json": as_json, "yaml": as_yaml}[output](found), nl=False)
    elif isinstance(found, Tenancy):
        click.echo(portrait(found, SystemClock().now(), bars=sys.stdout.isatty()), nl=False)
    else:
        click.echo(_list(found))


async def _one(target: Target, name: str) -> Tenancy:
    async with connect(target) as platform:
        return await platform.project(name)


async def _all(target: Target) -> list[Tenant]:
    async with connect(target) as platform:
        return await platform.projects()


def _list(found: list[Tenant]) -> str:
    if not found:
        return "there is no project of yours: ask whose it is to name you in its members"
    rows = [[each.project, each.owner, each.contact, each.review, each.role or ""] for each in found]
    return table([["PROJECT", "OWNER", "CONTACT", "REVIEW", "YOU ARE"], *rows], left=5)


def portrait(found: Tenancy, now: datetime, *, bars: bool) -> str:
    lines = [_first(found), *_people(found), *_policies(found), *_quota(found, bars=bars), *_work(found, now)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _first(found: Tenancy) -> str:
    whose = f"of {found.owner}{f' ({found.contact})' if found.contact else ''}" if found.owner else "of nobody"
    takes = "takes any work" if found.review is Review.OPEN else "takes only what was reviewed and landed"
    return f"{found.project}  {whose}, {takes}{f'; {found.cost_centre} pays' if found.cost_centre else ''}"


def _people(found: Tenancy) -> Iterator[str]:
    rows = [(role.value, names) for role, names in found.members.items()]
    for title, names in [*rows, ("builders", found.builders)]:
        if names:
            yield f"  {title:<11}{', '.join(names)}"


def _policies(found: Tenancy) -> Iterator[str]:
    for each in found.policies:
        of = " of the platform" if each.of_platform else ""
        yield f"  {'policy':<11}{each.name}{of}: {each.message}"
        for slip in each.slips:
            yield f"  {'':<11}lets nothing in: {slip}"


def _quota(found: Tenancy, *, bars: bool) -> Iterator[str]:
    rows = [(f"  {use.tier}", *_row(each, bars=bars)) for use in found.quota for each in use.held]
    rows += [(f"  {use.tier}", *NOTHING) for use in found.quota if not use.held]
    if not rows:
        return
    width = max(map(len, rows))
    yield ""
    yield from table([(*row, *[""] * (width - len(row))) for row in rows], left=width).splitlines()


def _row(each: Held, *, bars: bool) -> tuple[str, ...]:
    told = f"{each.used} of {each.limit} used, {each.left} left" if each.limit else f"{each.used} used, not bounded"
    most = ", ".join(f"{holder.name} {holder.holds}" for holder in each.most)
    return (each.thing, *((_bar(each.share),) if bars else ()), told, f"most by {most}" if most else "")


def _bar(share: float | None) -> str:
    if share is None:
        return ""
    full = min(BAR, max(round(share * BAR), share > 0))
    return "█" * full + "░" * (BAR - full)


def _work(found: Tenancy, now: datetime) -> Iterator[str]:
    counts = [f"{count} {kind.removeprefix('Pinterest')}" for kind, count in found.kinds.items()]
    yield ""
    yield f"  {'runs':<11}{', '.join(counts) or 'nothing'}"
    for each in found.glass:
        until = f"until {each.until}{', which is over' if each.overdue else ''}"
        yield f"  {'glass':<11}{each.name} is not reviewed, {until}: {each.by or 'somebody'}: {each.because}"
    for each in found.on_their_way[:SHOWN]:
        kept = f": {each.waits}" if each.waits else ""
        yield f"  {'on its way':<11}{each.name}  {each.verb} by {each.who}, accepted {age(each.at, now)} ago{kept}"
    if len(found.on_their_way) > SHOWN:
        yield f"  {'on its way':<11}and {len(found.on_their_way) - SHOWN} more"
    for each in found.waiting[:SHOWN]:
        yield f"  {'waiting':<11}{each.name}  {each.message or 'it is new'}  [{each.reason}]"
    if len(found.waiting) > SHOWN:
        yield f"  {'waiting':<11}and {len(found.waiting) - SHOWN} more        next: pin get --project {found.project}"
