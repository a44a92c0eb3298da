"""`pin get --unowned`: workloads without an owner, and objects whose workload was deleted. Deletes nothing."""

from __future__ import annotations

import click

from pincompute.api.unowned import UnownedObjects
from pincompute.base.clock import SystemClock
from pincompute.cli.durations import format_age
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect


async def show_unowned(target: Target, output: str) -> None:
    async with connect(target) as platform:
        found = await platform.list_unowned(target.project)
    if output in ("json", "yaml"):
        click.echo(as_format(output, found), nl=False)
    elif output == "name":
        click.echo("".join(f"{each.kind}/{each.name}\n" for each in found.objects), nl=False)
    elif found.objects:
        click.echo(_table(found))
    else:
        click.echo(f"everything in project {target.project} has an owner and a workload", err=True)


def _table(found: UnownedObjects) -> str:
    now = SystemClock().now()
    rows = [(each.kind, each.name, each.workload, each.why, format_age(each.since, now)) for each in found.objects]
    table = format_table([("KIND", "NAME", "WORKLOAD", "WHY", "AGE"), *rows], text_columns=4)
    return f"{table}\nand {found.left_out} more" if found.left_out else table
