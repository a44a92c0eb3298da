"""`pin files`: lists files in a replica, also of a container that has ended."""

from __future__ import annotations

import asyncio
import stat
from datetime import UTC, datetime

import click

from pincompute.api.debug import DebugRequest, FileDetail
from pincompute.base.printable import printable
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind

_TYPE_BITS = {"folder": stat.S_IFDIR, "link": stat.S_IFLNK, "file": stat.S_IFREG}


@click.command()
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.argument("path", default="/")
@click.option("--container", "-c", metavar="NAME", default="", help="Another container than the main one.")
@click.option("--ended", is_flag=True, help="Of the last container that has ended, before its files are deleted.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def files(  # noqa: PLR0913  (options, by name)
    target: Target, workload: str, path: str, container: str, *, ended: bool, output: str | None
) -> None:
    """List files in a replica, also of a container that has ended.

    Works without any program in the image; with --ended as long as the pod exists.
    """
    ref, replica = parse_replica_ref(workload)
    request = DebugRequest(verb="list", replica=replica, container=container, path=path, ended=ended)
    found = asyncio.run(_list_files(target, ref, request))
    if output:
        click.echo(as_format(output, found), nl=False)
    elif found:
        click.echo(format_table([("NAME", "MODE", "SIZE", "MODIFIED"), *map(_row, found)], text_columns=2))


async def _list_files(target: Target, ref: WorkloadRef, request: DebugRequest) -> list[FileDetail]:
    # Loads aiohttp, which the help does not need.
    from pincompute.cli.agent_report import read_report

    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        return await read_report(platform.open_session(target.project, ref.name, request), list[FileDetail])


def _row(file: FileDetail) -> tuple[str, ...]:
    mode = stat.filemode(file.mode | _TYPE_BITS.get(file.type, 0)).replace("?", "-")
    modified = datetime.fromtimestamp(file.modified, UTC).strftime("%Y-%m-%d %H:%M")
    name = f"{file.name} -> {file.target}" if file.target else file.name
    return printable(name), mode, f"{file.size:,}", modified
