"""`pin shell`: a shell, or any program, in a running replica."""

from __future__ import annotations

import asyncio
import sys

import click

from pincompute.api.exec_request import DEFAULT_SHELL, ExecRequest
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PROGRAM_UNKNOWN
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.terminal import attach_terminal, is_interactive
from pincompute.cli.workload_ref import WorkloadRef, parse_replica_ref, verify_kind

EXECUTABLE_NOT_FOUND = "executable file not found"
"""Part of the container runtime's error message for a missing program."""


@click.command()
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.argument("program", nargs=-1, metavar="[-- PROGRAM [ARGS]...]", type=click.UNPROCESSED)
@click.option("--container", "-c", metavar="NAME", default="", help="Another container than the main one.")
@platform_options
def shell(target: Target, workload: str, program: tuple[str, ...], container: str) -> None:
    """Open a shell in a running replica, or run a program there.

    Uses the newest replica, or NAME/REPLICA. Standard input is passed on, and the exit code is the program's.
    """
    ref, replica = parse_replica_ref(workload)
    terminal = is_interactive()
    request = ExecRequest(
        replica=replica, container=container, command=program or DEFAULT_SHELL, terminal=terminal, input=True
    )
    try:
        sys.exit(asyncio.run(_run_program(target, ref, request)))
    except Refused as refused:
        raise _simplify_error(refused, ref.name, request) from refused


def _simplify_error(refused: Refused, name: str, request: ExecRequest) -> Refused:
    """Replace the nested errors of runtime, kubelet and API server where the program does not exist."""
    if not any(EXECUTABLE_NOT_FOUND in each.what for each in refused.problems):
        return refused
    if request.command == DEFAULT_SHELL:
        return Refused(Problem(PROGRAM_UNKNOWN, f"the image of {name} has no shell", next=f"pin logs {name}"))
    what = f"{name} has no program '{request.command[0]}'"
    return Refused(Problem(PROGRAM_UNKNOWN, what, next=f"pin shell {name}"))


async def _run_program(target: Target, ref: WorkloadRef, request: ExecRequest) -> int:
    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        async with platform.exec(target.project, ref.name, request) as stream:
            return await attach_terminal(stream, terminal=request.terminal)
