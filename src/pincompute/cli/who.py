"""`pin runtime who`: which workloads run an image, a part or a runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import click

from pincompute.api.fleet import Copy, Fleet
from pincompute.api.runtime import Runtime
from pincompute.api.workload import Workload
from pincompute.cli.live import Live, live
from pincompute.cli.output import as_json
from pincompute.cli.table import table
from pincompute.cli.target import Target, connect, to_platform
from pincompute.planning.runtimes.runtime import serves

_SHORTEST = 6
"""Of a digest: so many characters are typed at least."""


@click.command()
@click.argument("what")
@click.option("--output", "-o", type=click.Choice(["json", "wide"]), help="Every pod, or for programs.")
@to_platform
def who(target: Target, what: str, output: str | None) -> None:
    """Show who runs WHAT: a digest, a part such as logs-2 or logs, or the number of a runtime."""
    fleet, copies = asyncio.run(_asked(target))
    seen = live(fleet)
    found = [each for each in copies if _runs(seen, each, what)]
    if output == "json":
        click.echo(as_json(found), nl=False)
    elif found:
        click.echo(_rendered(seen, found, wide=output == "wide"))
    else:
        click.echo(f"nobody runs {what}        see: pin runtime status", err=True)


async def _asked(target: Target) -> tuple[Fleet, list[Copy]]:
    async with connect(target) as platform:
        return await platform.fleet(), await platform.copies()


def _runs(seen: Live, copy: Copy, what: str) -> bool:
    if what.isdigit() and len(what) < _SHORTEST:
        owner = next((each for each in seen.workloads if _name(each) == (copy.project, copy.workload)), None)
        return owner is not None and copy.parts == _parts(seen, owner, seen.known(int(what)))
    if any(what in (part, part.rpartition("-")[0]) for part in copy.parts):
        return True
    digest = what.removeprefix("sha256:")
    return len(digest) >= _SHORTEST and any(f"sha256:{digest}" in each for each in copy.images)


def _parts(seen: Live, owner: Workload, runtime: Runtime) -> list[str]:
    """Of that runtime, those that serve it."""
    known = seen.runtimes.parts
    return [each for each in runtime.spec.parts if each in known and serves(known[each], owner)]


def _name(owner: Workload) -> tuple[str, str]:
    return owner.metadata.namespace, owner.metadata.name


def _rendered(seen: Live, found: Iterable[Copy], *, wide: bool) -> str:
    owners = {_name(each): each for each in seen.workloads}
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for each in found:
        owner = owners.get((each.project, each.workload))
        whose = _whose(seen, owner) if owner else ""
        kind = owner.kind.removeprefix("Pinterest") if owner else ""
        grouped.setdefault((whose, each.project, each.workload, kind), []).append(each.pod)
    rows = [
        [*group, str(len(pods)), *([" ".join(sorted(pods))] if wide else [])] for group, pods in sorted(grouped.items())
    ]
    head = ["OWNER", "PROJECT", "WORKLOAD", "KIND", "PODS", *(["NAMES"] if wide else [])]
    return table([head, *rows], left=len(head))


def _whose(seen: Live, owner: Workload) -> str:
    project = seen.around.projects.get(owner.metadata.namespace)
    return owner.spec.owner or (project.spec.owner if project else "") or owner.metadata.namespace
