"""`pin why`: the reason why a workload is not ready or not done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import click

from pincompute.api.workload_detail import Diagnosis, PathStep
from pincompute.base.printable import printable
from pincompute.cli.completions import complete_replica_names
from pincompute.cli.output import as_json
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import parse_replica_ref, verify_kind


@click.command()
@click.argument("workload", metavar="NAME[/REPLICA]", shell_complete=complete_replica_names)
@click.option("--verbose", "-v", is_flag=True, help="Also print the path from the workload to the cause.")
@click.option("--output", "-o", type=click.Choice(["json"]), help="Output format for programs.")
@platform_options
def why(target: Target, workload: str, output: str | None, *, verbose: bool) -> None:
    """Explain why a workload is not ready or not done.

    NAME/REPLICA explains one replica or task. Exits with 1 for a problem, and with 0 for a workload that is fine,
    paused or still starting.
    """
    diagnosis = asyncio.run(_fetch_diagnosis(target, workload))
    if output == "json":
        click.echo(as_json(diagnosis), nl=False)
    else:
        click.echo(printable(format_diagnosis(diagnosis) + (format_path(diagnosis.path) if verbose else "")), nl=False)
    sys.exit(1 if diagnosis.is_problem else 0)


async def _fetch_diagnosis(target: Target, text: str) -> Diagnosis:
    ref, replica = parse_replica_ref(text)
    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        if replica:
            # Loads every kind, which the diagnosis of a whole workload, made by the desk, does not need.
            from pincompute.planning.diagnosis.replica import explain_replica

            return explain_replica(await platform.describe(target.project, ref.name), replica)
        return await platform.explain(target.project, ref.name)


def format_diagnosis(diagnosis: Diagnosis) -> str:
    state = "" if diagnosis.is_problem else "no problem: "
    lines = [f"{diagnosis.label}: {state}{diagnosis.what}  [{diagnosis.reason}]"]
    if diagnosis.is_problem and diagnosis.where:
        lines.append(f"  seen in {diagnosis.where}")
    lines += [f"  {each}" for each in diagnosis.note.splitlines()]
    if diagnosis.is_problem and diagnosis.waits_for:
        lines.append(f"  action: {diagnosis.waits_for}")
    if diagnosis.next:
        lines.append(f"  next: {diagnosis.next}")
    if also := diagnosis.also:
        lines.append(f"  also: {also.what}  [{also.reason}]")
    return "".join(f"{line}\n" for line in lines)


def format_path(path: Sequence[PathStep]) -> str:
    """One line for each object: blocked down to the cause, and well below it."""
    if not path:
        return ""
    rows = [("blocked" if each.blocked else "well", each.object, each.since, each.evidence) for each in path]
    table = format_table([("", "object", "since", "evidence"), *rows], text_columns=4)
    return "".join(f"  {line}\n" for line in table.splitlines())
