"""`pin logs`: the logs of a workload, of running and ended pods."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import Any

import click

from pincompute.api.logs import DEFAULT_TAIL_LINES, LogMarker, LogQuery
from pincompute.base.clock import SystemClock
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.durations import parse_time_span
from pincompute.cli.log_formatter import LogFormatter
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind

_MAX_TAIL_LINES = 100_000


def _parse_since(_: click.Context, __: click.Parameter, value: str) -> int:
    """Return the beginning of a time span that ends now, in nanoseconds since 1970; 0 for none."""
    if not value:
        return 0
    return int((SystemClock().now().timestamp() - parse_time_span(value)) * 1e9)


@click.command()
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.option("--follow", "-f", is_flag=True, help="Keep running and print new lines, also over restarts.")
@click.option(
    "--tail",
    type=click.IntRange(0, _MAX_TAIL_LINES),
    default=DEFAULT_TAIL_LINES,
    help="Number of last lines of each replica.",
    show_default=True,
)
@click.option("--since", metavar="SPAN", default="", callback=_parse_since, help="Only newer lines, such as 10m.")
@click.option("--previous", is_flag=True, help="Logs of the container run before the last restart.")
@click.option("--gone", "include_deleted", is_flag=True, help="Include replicas whose pods are deleted.")
@click.option("--container", "-c", metavar="NAME", default="", help="Another container, or a file of the log volume.")
@platform_options
def logs(target: Target, workload: str, **options: Any) -> None:
    """Show the logs of a workload.

    All replicas at once, with restarts marked, also after the pods are deleted. NAME/REPLICA selects one replica or
    task, such as resize/12.
    """
    ref, replica = parse_replica_ref(workload)
    asyncio.run(_print_logs(target, ref, LogQuery(replica=replica, **options)))


async def _print_logs(target: Target, ref: WorkloadRef, query: LogQuery) -> None:
    # A file or another program gets the lines as they were printed.
    formatter = LogFormatter(ref.name, raw=not sys.stdout.isatty())
    async with (
        connect(target) as platform,
        aclosing(platform.logs(target.project, ref.name, query)) as items,
    ):
        await verify_kind(platform, target.project, ref)
        async for item in items:
            # Markers about all replicas are remarks on the logs, and no part of them.
            concerns_all = isinstance(item, LogMarker) and not item.replica
            for line in formatter.format_item(item):
                click.echo(line, err=concerns_all)
