"""`pin get`: the workloads of a project, or one of them in short."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import click

from pincompute.api.summary import Summary, unknown_workload
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import Word, kind_of, offered, word

COLUMNS = ("NAME", "KIND", "READY", "REASON", "ADDRESS")


class Looking(NamedTuple):
    """At what somebody looks, and how."""

    asked: tuple[Word, ...]
    kind: str
    wrong: bool
    output: str

    @property
    def alone(self) -> bool:
        """One workload is looked at closely."""
        return len(self.asked) == 1 and not self.output

    def wants(self, each: Summary) -> bool:
        named = not self.asked or each.name in {one.name for one in self.asked}
        return named and (not self.kind or each.kind == self.kind) and (not self.wrong or each.failed)

    def must_be_among(self, project: str, there: Mapping[str, Summary]) -> None:
        """All that is asked for by name, and of the kind that it was called."""
        missing = (each for each in self.asked if each.name not in there)
        refuse_all(unknown_workload(project, each.name, sorted(there)) for each in missing)
        for each in self.asked:
            each.must_be(there[each.name].kind)


@click.command()
@click.argument("names", nargs=-1, shell_complete=offered)
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


def rows(workloads: Sequence[Summary], *, wide: bool, least: Sequence[int] = ()) -> str:
    """The table of them."""
    head = (*COLUMNS, "MESSAGE") if wide else COLUMNS
    return table([head, *(_row(each, wide=wide) for each in workloads)], left=len(head), least=least)


def _row(each: Summary, *, wide: bool) -> tuple[str, ...]:
    # Every kind of workload begins so, and a person has little room.
    kind = each.kind.removeprefix("Pinterest")
    row = (each.label, kind, f"{each.ready}/{each.wanted}", each.reason, each.address)
    return (*row, each.message) if wide else row
