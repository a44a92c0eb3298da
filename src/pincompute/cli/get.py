"""`pin get`: the workloads of a project, or one of them in short."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import click

from pincompute.api.summary import Summary
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.looking import Looking, rows
from pincompute.cli.offered import workload_names
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import Word, kind_of, word


@click.command()
@click.argument("names", nargs=-1, shell_complete=workload_names)
@click.option("--kind", "-k", default="", help="Only these, such as service or jobset.")
@click.option("--wrong", is_flag=True, help="Only those of which something is wrong.")
@click.option("--output", "-o", type=click.Choice(["json", "yaml", "name", "wide"]), help="Another form.")
@click.option("--watch", "-w", is_flag=True, help="Go on, and show what changes.")
@to_platform
def get(  # noqa: PLR0913  (options, by name)
    target: Target, names: tuple[str, ...], kind: str, output: str | None, *, wrong: bool, watch: bool
) -> None:
    """List workloads, or show one in short."""
    looking = Looking(tuple(word(each) for each in names), kind_of(kind) if kind else "", wrong, output or "")
    if watch:
        _watch(target, looking)
        return
    if looking.alone:
        click.echo(asyncio.run(_one(target, looking.asked[0])), nl=False)
        return
    workloads = asyncio.run(_list(target))
    looking.must_be_among(target.project, {each.name: each for each in workloads})
    chosen = [each for each in workloads if looking.wants(each)]
    click.echo(_rendered(chosen, output, target.project, narrowed=bool(kind or wrong)), nl=False)


def _watch(target: Target, looking: Looking) -> None:
    # Only who looks on needs it.
    from pincompute.cli.watch import FORMS, look_on

    if looking.output not in FORMS:
        what = f"what changes cannot be shown as {looking.output}"
        raise Refused(Problem(USAGE, what, next="pin get --watch, or with --output json, one workload a line"))
    with suppress(KeyboardInterrupt):
        # The customary way to end it.
        asyncio.run(look_on(target, looking))


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
    return rows(workloads, wide=output == "wide") + "\n"
