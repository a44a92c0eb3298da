"""`pin get`: the workloads of a project, or one of them in short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from pincompute.api.summary import Summary, unknown_workload
from pincompute.base.problem import refuse_all
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import Word, kind_of, word

COLUMNS = ("NAME", "KIND", "READY", "REASON", "ADDRESS")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--kind", "-k", default="", help="Only these, such as service or jobset.")
@click.option("--wrong", is_flag=True, help="Only those of which something is wrong.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml", "name", "wide"]), help="Another form.")
@to_platform
def get(target: Target, names: tuple[str, ...], kind: str, output: str | None, *, wrong: bool) -> None:
    """List workloads, or show one in short."""
    asked = [word(each) for each in names]
    if len(asked) == 1 and output is None:
        click.echo(asyncio.run(_one(target, asked[0])), nl=False)
        return
    workloads = asyncio.run(_list(target))
    there = {each.name: each for each in workloads}
    refuse_all(unknown_workload(target.project, each.name, sorted(there)) for each in asked if each.name not in there)
    for each in asked:
        each.must_be(there[each.name].kind)
    chosen = _chosen(workloads, asked, kind_of(kind) if kind else "", wrong=wrong)
    click.echo(_rendered(chosen, output, target.project, narrowed=bool(kind or wrong)), nl=False)


def _chosen(workloads: Sequence[Summary], asked: Sequence[Word], kind: str, *, wrong: bool) -> list[Summary]:
    names = {each.name for each in asked}
    return [
        each
        for each in workloads
        if (not names or each.name in names) and (not kind or each.kind == kind) and (not wrong or each.failed)
    ]


async def _one(target: Target, asked: Word) -> str:
    # Only who looks at one workload needs to know every kind.
    from pincompute.base.clock import SystemClock
    from pincompute.cli.portrait import portrait

    async with connect(target) as platform:
        found = await platform.find(target.project, asked.name)
    asked.must_be(found.kind)
    return portrait(found, SystemClock().now())


async def _list(target: Target) -> list[Summary]:
    async with connect(target) as platform:
        return sorted(await platform.all(target.project), key=lambda each: each.name)


def _rendered(workloads: list[Summary], output: str | None, project: str, *, narrowed: bool) -> str:
    if output == "json":
        return as_json(workloads)
    if output == "yaml":
        return as_yaml(workloads)
    if output == "name":
        return "".join(f"{each.name}\n" for each in workloads)
    if not workloads:
        hint = "pin get" if narrowed else "pin deploy NAME --image IMAGE --port 8080"
        click.echo(f"project {project} has no {'such ' if narrowed else ''}workloads        next: {hint}", err=True)
        return ""
    rows = [_row(each, wide=output == "wide") for each in workloads]
    head = (*COLUMNS, "MESSAGE") if output == "wide" else COLUMNS
    return table([head, *rows], left=len(head)) + "\n"


def _row(each: Summary, *, wide: bool) -> tuple[str, ...]:
    # Every kind of workload begins so, and a person has little room.
    kind = each.kind.removeprefix("Pinterest")
    row = (each.label, kind, f"{each.ready}/{each.wanted}", each.reason, each.address)
    return (*row, each.message) if wide else row
