"""`pin whoami`: the caller's identity, and roles in projects."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.whoami import Whoami
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options


@click.command()
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "name"]), help="Output format for programs.")
@platform_options
def whoami(target: Target, output: str | None) -> None:
    """Show your identity, and your role in each project."""
    caller = asyncio.run(_fetch_caller(target))
    if output == "name":
        click.echo(caller.name)
    else:
        click.echo(as_format(output, caller) if output else _format_caller(caller), nl=False)


async def _fetch_caller(target: Target) -> Whoami:
    async with connect(target) as platform:
        return await platform.whoami()


def _format_caller(caller: Whoami) -> str:
    groups = f"  groups {', '.join(caller.groups)}" if caller.groups else ""
    until = f"  until {caller.valid_until}" if caller.valid_until else ""
    lines = [f"{caller.name}{groups}{until}"]
    if caller.is_admin:
        lines.append("  administrator of the platform and of every project")
    if caller.projects:
        rows = [[each.project, each.role, each.owner, each.contact] for each in caller.projects]
        lines += ["", format_table([["PROJECT", "ROLE", "OWNER", "CONTACT"], *rows], text_columns=4)]
    elif not caller.is_admin:
        lines.append("  member of no project        next: ask a project's owner to add you to its members")
    return "".join(f"{line}\n" for line in lines)
