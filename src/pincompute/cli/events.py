"""`pin events`: the Kubernetes events of a workload and of its objects."""

from __future__ import annotations

import asyncio

import click

from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.detail import fetch_detail, format_events
from pincompute.cli.output import as_json
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--output", "-o", type=click.Choice(["json"]), help="Output format for programs.")
@platform_options
def events(target: Target, workload: str, output: str | None) -> None:
    """Show the Kubernetes events of a workload.

    Kubernetes keeps events for an hour. `pin why` tells what follows from them.
    """
    detail = asyncio.run(fetch_detail(target, workload))
    if output == "json":
        click.echo(as_json(detail.events), nl=False)
    elif detail.events:
        click.echo(printable("\n".join(format_events(detail.events, SystemClock().now()))))
    else:
        click.echo(f"{detail.summary.label} has no events        next: pin why {detail.summary.name}", err=True)
