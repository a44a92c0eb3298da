"""`pin provenance`: from the commit to the copies that run, each link looked at now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from pincompute.api.provenance import LinkAccount, ProvenanceAccount
from pincompute.cli.offered import workload_names
from pincompute.cli.output import as_json, as_yaml
from pincompute.cli.target import Target, connect, to_platform
from pincompute.cli.word import word


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="For programs.")
@to_platform
def provenance(target: Target, workload: str, output: str | None) -> None:
    """Show from which commit, by whose word, something runs.

    Every link is looked at when you ask: commit, reviewers, file, builder, submission, revision, copies. It ends with
    1 where one of them does not hold.
    """
    found = asyncio.run(_ask(target, word(workload).name))
    click.echo({"json": as_json, "yaml": as_yaml}[output](found) if output else _text(found), nl=False)
    if not all(each.holds for each in found.links):
        raise SystemExit(1)


async def _ask(target: Target, name: str) -> ProvenanceAccount:
    async with connect(target) as platform:
        return await platform.provenance(target.project, name)


def _text(found: ProvenanceAccount) -> str:
    lines = [f"{found.label}  {found.version or 'nobody vouches for it'}", *links(found.links)]
    return "".join(f"{line}\n" for line in lines)


def links(chain: list[LinkAccount]) -> Iterator[str]:
    width = max((len(each.what) for each in chain), default=0)
    for each in chain:
        yield f"  {'ok ' if each.holds else 'NO '} {each.what.ljust(width)}  {each.says}"
        if each.why:
            yield f"      {' ' * width}  {each.why}"
