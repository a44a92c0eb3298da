"""`pin shell`: a shell, or any program, in a copy that runs."""

from __future__ import annotations

import asyncio
import sys

import click

from pincompute.api.entering import SHELL, Inside
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PROGRAM_UNKNOWN
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.terminal import lent, there

INTERRUPTED = 130
"""As shells have it."""
ABSENT = "executable file not found"
"""In what a node says that was to run something."""


@click.command()
@click.argument("workload", metavar="NAME[/COPY]", shell_complete=workload_names)
@click.argument("program", nargs=-1, metavar="[-- PROGRAM [WORDS]...]", type=click.UNPROCESSED)
@click.option("--container", "-c", metavar="NAME", default="", help="In another container than its own program's.")
@to_platform
def shell(target: Target, workload: str, program: tuple[str, ...], container: str) -> None:
    """Open a shell in a copy that runs, or run a program there.

    In the newest copy; NAME/COPY for another. It ends with the program, and as that ended. What is piped in is its
    input.
    """
    name, _, copy = workload.partition("/")
    terminal = there()
    inside = Inside(copy=copy, container=container, command=program or SHELL, terminal=terminal, input=True)
    try:
        sys.exit(asyncio.run(_shell(target, name, inside)))
    except Refused as refused:
        raise _plainer(refused, name, inside) from refused
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _plainer(refused: Refused, name: str, inside: Inside) -> Refused:
    """Without the words of everybody who passed it on."""
    if not any(ABSENT in each.what for each in refused.problems):
        return refused
    if inside.command == SHELL:
        return Refused(Problem(PROGRAM_UNKNOWN, f"the image of {name} has no shell", next=f"pin logs {name}"))
    what = f"{name} has no program '{inside.command[0]}'"
    return Refused(Problem(PROGRAM_UNKNOWN, what, next=f"pin shell {name}"))


async def _shell(target: Target, name: str, inside: Inside) -> int:
    async with connect(target) as platform, platform.enter(target.project, name, inside) as execution:
        return await lent(execution, terminal=inside.terminal)
