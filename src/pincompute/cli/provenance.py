"""`pin provenance`: the chain from the commit to the running replicas, verified at each call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from pincompute.api.provenance import ProvenanceChain, ProvenanceLink
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.output import as_format
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, parse_workload_ref, verify_kind


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def provenance(target: Target, workload: str, output: str | None) -> None:
    """Show the commit, reviews and build that a workload runs from.

    Verifies each link: commit, reviewers, file, builder, submission, revision, replicas. Exits with 1 if one fails.
    """
    chain = asyncio.run(_fetch_chain(target, parse_workload_ref(workload)))
    click.echo(as_format(output, chain) if output else _format_chain(chain), nl=False)
    if not all(each.verified for each in chain.links):
        raise SystemExit(1)


async def _fetch_chain(target: Target, ref: WorkloadRef) -> ProvenanceChain:
    async with connect(target) as platform:
        await verify_kind(platform, target.project, ref)
        return await platform.provenance(target.project, ref.name)


def _format_chain(chain: ProvenanceChain) -> str:
    lines = [f"{chain.label}  {chain.version or 'unreviewed'}", *format_links(chain.links)]
    return "".join(f"{line}\n" for line in lines)


def format_links(links: list[ProvenanceLink]) -> Iterator[str]:
    width = max((len(each.subject) for each in links), default=0)
    for link in links:
        yield f"  {'ok ' if link.verified else 'NO '} {link.subject.ljust(width)}  {link.claim}"
        if link.failure:
            yield f"      {' ' * width}  {link.failure}"
