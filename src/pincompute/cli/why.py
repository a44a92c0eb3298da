"""`pin why`: one honest answer to what keeps a workload from being as wanted."""

from __future__ import annotations

import asyncio
import sys

import click

from pincompute.api.account import Answer
from pincompute.cli.offered import workload_names
from pincompute.cli.output import as_json
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import word


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--output", "-o", type=click.Choice(["json"]), help="For programs.")
@to_platform
def why(target: Target, workload: str, output: str | None) -> None:
    """Say why a workload is not as wanted.

    Ends with 1 where something is wrong, and with 0 where nothing is, or where it is only busy.
    """
    answer = asyncio.run(_why(target, workload))
    if output == "json":
        click.echo(as_json(answer), nl=False)
    else:
        click.echo(told(answer), nl=False)
    sys.exit(1 if answer.wrong else 0)


async def _why(target: Target, said: str) -> Answer:
    asked = word(said)
    async with connect(target) as platform:
        if asked.kind:
            asked.must_be((await platform.find(target.project, asked.name)).kind)
        return await platform.why(target.project, asked.name)


def told(answer: Answer) -> str:
    if not answer.wrong:
        first = f"{answer.label}: nothing is wrong: {answer.what}  [{answer.reason}]"
        notes = [f"  {each}" for each in answer.note.splitlines()]
        return "".join(f"{each}\n" for each in (first, *notes, *_next(answer)))
    lines = [f"{answer.label}: {answer.what}  [{answer.reason}]"]
    lines += [f"  seen in {answer.where}"] if answer.where else []
    lines += [f"  {each}" for each in answer.note.splitlines()]
    lines += [f"  waits for {answer.waits}"] if answer.waits else []
    return "".join(f"{each}\n" for each in (*lines, *_next(answer)))


def _next(answer: Answer) -> list[str]:
    return [f"  next: {answer.next}"] if answer.next else []
