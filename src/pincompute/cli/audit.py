"""`pin audit`: the audit log of a project or of the platform."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.audit import MAX_AUDIT_ENTRIES, MAX_AUDIT_NUMBER, AuditPage, AuditQuery
from pincompute.base.printable import printable
from pincompute.cli.output import as_format
from pincompute.cli.page_options import page_options
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options


@click.command()
@click.option("--all", "all_", is_flag=True, help="Of all projects and of the platform itself, for administrators.")
@page_options(MAX_AUDIT_ENTRIES, MAX_AUDIT_NUMBER, 20)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def audit(target: Target, limit: int, before: int, output: str | None, *, all_: bool) -> None:
    """Show who did what in a project, newest first.

    Deploys, changes, deletions, emergency overrides and shells, with refused ones; with --all also runtime rolls.
    """
    page = asyncio.run(_fetch_page(target, AuditQuery(limit, before), None if all_ else target.project))
    if output:
        click.echo(as_format(output, page), nl=False)
    else:
        # A note may quote what a tenant wrote.
        click.echo(printable(format_audit_page(page, all_projects=all_)))


async def _fetch_page(target: Target, query: AuditQuery, project: str | None) -> AuditPage:
    async with connect(target) as platform:
        return await platform.audit_page(query, project)


def format_audit_page(page: AuditPage, *, all_projects: bool) -> str:
    if not page.entries:
        return "no entries"
    header = ["AT", "CALLER", *(["PROJECT"] if all_projects else []), "OBJECT", "ACT", "NOTE"]
    rows = [
        [
            each.at.partition(".")[0].partition("+")[0],
            each.caller,
            *([each.project] if all_projects else []),
            each.object,
            each.act,
            " ".join(each.note.split()),
        ]
        for each in page.entries
    ]
    table = format_table([header, *rows], text_columns=len(header))
    return (
        f"{table}\nolder entries: pin audit{' --all' if all_projects else ''} --before {page.next}"
        if page.next
        else table
    )
