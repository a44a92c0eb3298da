"""`pin ps`: processes and sockets of replicas."""

from __future__ import annotations

import asyncio

import click

from pincompute.api.debug import DebugRequest, ProcessReport
from pincompute.api.structs import LenientStruct
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import REPLICA_UNKNOWN
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.durations import format_duration
from pincompute.cli.output import as_format
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.usage import format_memory
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind

MAX_REPLICAS = 10
"""Each is a session with a node."""
MAX_COMMAND_CHARS = 60
"""In the table; -o json has more."""
_PROCESS_HEADER = ("COMMAND", "PID", "USER", "STATE", "CPU", "MEMORY", "AGE")
_SOCKET_HEADER = ("SOCKET", "STATE", "LOCAL", "REMOTE", "PID")


class ReplicaReport(LenientStruct, frozen=True, omit_defaults=False):
    """Processes and sockets, with the replica that has them."""

    replica: str
    report: ProcessReport


@click.command()
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.option("--container", "-c", metavar="NAME", default="", help="Another container than the main one.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def ps(target: Target, workload: str, container: str, output: str | None) -> None:
    """Show the processes and open sockets of replicas.

    Of each running replica, ten at most, or of NAME/REPLICA; the busiest processes first. Works without any program in
    the image. A socket without a PID is another container's of the replica.
    """
    ref, replica = parse_replica_ref(workload)
    found = asyncio.run(_read_reports(target, ref, replica, container))
    if output:
        click.echo(as_format(output, found), nl=False)
        return
    click.echo("\n\n".join(_format_report(each) for each in found))


async def _read_reports(target: Target, ref: WorkloadRef, replica: str, container: str) -> list[ReplicaReport]:
    # Loads aiohttp, which the help does not need.
    from pincompute.cli.agent_report import read_report

    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        names = [replica] if replica else await _running_replicas(platform, target.project, ref.name)
        found = []
        for name in names:
            request = DebugRequest(verb="processes", replica=name, container=container)
            report = await read_report(platform.open_session(target.project, ref.name, request), ProcessReport)
            found.append(ReplicaReport(replica=name, report=report))
        return found


async def _running_replicas(platform: PlatformClient, project: str, name: str) -> list[str]:
    detail = await platform.describe(project, name)
    names = [each.name for each in detail.replicas if each.state in {"Ready", "Running"}]
    if not names:
        raise Refused(Problem(REPLICA_UNKNOWN, f"{name} has no running replica", next=f"pin why {name}"))
    if len(names) > MAX_REPLICAS:
        click.echo(f"{MAX_REPLICAS} of {len(names)} running replicas; another one: pin ps {name}/REPLICA", err=True)
    return names[:MAX_REPLICAS]


def _format_report(found: ReplicaReport) -> str:
    report = found.report
    processes = [
        (
            _shortened(printable(each.command)), str(each.pid), str(each.user), each.state, f"{each.cpu_seconds:.1f}s",
            format_memory(each.memory_bytes), format_duration(each.age_seconds),
        )
        for each in report.processes
    ]  # fmt: skip
    sockets = [
        (each.protocol, each.state or "-", each.local, each.remote, str(each.pid or "-")) for each in report.sockets
    ]
    lines = [found.replica, format_table([_PROCESS_HEADER, *processes], text_columns=1)]
    if report.process_count > len(processes):
        lines.append(f"and {report.process_count - len(processes):,} more processes")
    if sockets:
        lines += ["", format_table([_SOCKET_HEADER, *sockets], text_columns=4)]
    if report.socket_count > len(sockets):
        lines.append(f"and {report.socket_count - len(sockets):,} more sockets")
    return "\n".join(lines)


def _shortened(command: str) -> str:
    return command if len(command) <= MAX_COMMAND_CHARS else f"{command[: MAX_COMMAND_CHARS - 1]}…"
