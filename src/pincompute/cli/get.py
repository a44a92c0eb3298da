"""`pin get`: the workloads of a project, or one of them."""

from __future__ import annotations

import asyncio

import click
import msgspec

from pincompute.api.summary import Summary
from pincompute.base.problem import Problem, refuse_all
from pincompute.base.reasons import WORKLOAD_UNKNOWN
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform

COLUMNS = ("NAME", "KIND", "READY", "REASON", "ADDRESS")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--output", "-o", type=click.Choice(["json", "yaml", "name", "wide"]), help="Another form.")
@to_platform
def get(target: Target, names: tuple[str, ...], output: str | None) -> None:
    """List workloads."""
    workloads = asyncio.run(_list(target))
    there = {each.name for each in workloads}
    refuse_all(_missing(name, target.project, there) for name in names if name not in there)
    chosen = [each for each in workloads if not names or each.name in names]
    click.echo(_rendered(chosen, output, target.project), nl=False)


async def _list(target: Target) -> list[Summary]:
    async with connect(target) as platform:
        return sorted(await platform.all(target.project), key=lambda each: each.name)


def _missing(name: str, project: str, there: set[str]) -> Problem:
    note = f"there are: {', '.join(sorted(there)) or 'none'}"
    return Problem(WORKLOAD_UNKNOWN, f"project {project} has no workload '{name}'", note=note)


def _rendered(workloads: list[Summary], output: str | None, project: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(workloads), indent=2).decode() + "\n"
    if output == "yaml":
        # Only the form that is asked for is loaded: a person waits for it.
        import yaml

        return yaml.safe_dump(msgspec.to_builtins(workloads), sort_keys=False)
    if output == "name":
        return "".join(f"{each.name}\n" for each in workloads)
    if not workloads:
        click.echo(
            f"project {project} has no workloads        next: pin deploy NAME --image IMAGE --port 8080", err=True
        )
        return ""
    rows = [_row(each, wide=output == "wide") for each in workloads]
    head = (*COLUMNS, "MESSAGE") if output == "wide" else COLUMNS
    return table([head, *rows], left=len(head)) + "\n"


def _row(each: Summary, *, wide: bool) -> tuple[str, ...]:
    # Every kind of workload begins so, and a person has little room.
    kind = each.kind.removeprefix("Pinterest")
    row = (each.label, kind, f"{each.ready}/{each.wanted}", each.reason, each.address)
    return (*row, each.message) if wide else row
