"""`pin whoami`: who you are to the desk, and what you may."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.whoami import Whoami
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform


@click.command()
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "name"]), help="For programs.")
@to_platform
def whoami(target: Target, output: str | None) -> None:
    """Show who you are to the desk, and what you are in each project."""
    found = asyncio.run(_ask(target))
    if output == "name":
        click.echo(found.name)
    else:
        click.echo({"json": as_json, "yaml": as_yaml}[output](found) if output else _text(found), nl=False)


async def _ask(target: Target) -> Whoami:
    async with connect(target) as platform:
        return await platform.whoami()


def _text(found: Whoami) -> str:
    groups = f"  in {', '.join(found.groups)}" if found.groups else ""
    until = f"  until {found.until}" if found.until else ""
    lines = [f"{found.name}{groups}{until}"]
    if found.administers:
        lines.append("  administers the platform: every project, and what is in none")
    if found.projects:
        rows = [[each.project, each.role, each.owner, each.contact] for each in found.projects]
        lines += ["", table([["PROJECT", "YOU ARE", "OWNER", "CONTACT"], *rows], left=4)]
    elif not found.administers:
        lines.append("  in no project: ask whose it is to name you in its members")
    return "".join(f"{line}\n" for line in lines)
