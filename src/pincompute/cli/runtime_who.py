"""`pin runtime who`: finds the workloads that run an image, a part or a runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import click

from pincompute.api.fleet import Fleet, FleetPod
from pincompute.api.runtime import Runtime
from pincompute.api.workload import Workload
from pincompute.cli.fleet_state import FleetState, fleet_state_of
from pincompute.cli.output import as_json
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.planning.runtimes.selection import part_serves

_MIN_DIGEST_LENGTH = 6
"""Shorter arguments are numbers of runtimes, and no digests."""


@click.command()
@click.argument("what", metavar="DIGEST|PART|RUNTIME")
@click.option("--output", "-o", type=click.Choice(["json", "wide"]), help="All pods, as JSON or by name.")
@platform_options
def who(target: Target, what: str, output: str | None) -> None:
    """Show the workloads that run an image digest, a part such as logs-2 or logs, or the number of a runtime."""
    response, pods = asyncio.run(_fetch_fleet_and_pods(target))
    fleet = fleet_state_of(response)
    found = [each for each in pods if _runs(fleet, each, what)]
    if output == "json":
        click.echo(as_json(found), nl=False)
    elif found:
        click.echo(_format_users(fleet, found, wide=output == "wide"))
    else:
        click.echo(f"no workload runs {what}        see: pin runtime status", err=True)


async def _fetch_fleet_and_pods(target: Target) -> tuple[Fleet, list[FleetPod]]:
    async with connect(target) as platform:
        return await platform.fleet(), await platform.list_pods()


def _runs(fleet: FleetState, pod: FleetPod, what: str) -> bool:
    if what.isdigit() and len(what) < _MIN_DIGEST_LENGTH:
        owner = next((each for each in fleet.workloads if _key(each) == (pod.project, pod.workload)), None)
        return owner is not None and pod.parts == _parts_serving(fleet, owner, fleet.runtime(int(what)))
    if any(what in (part, part.rpartition("-")[0]) for part in pod.parts):
        return True
    digest = what.removeprefix("sha256:")
    return len(digest) >= _MIN_DIGEST_LENGTH and any(f"sha256:{digest}" in each for each in pod.images)


def _parts_serving(fleet: FleetState, owner: Workload, runtime: Runtime) -> list[str]:
    parts = fleet.runtimes.parts
    return [each for each in runtime.spec.parts if each in parts and part_serves(parts[each], owner)]


def _key(owner: Workload) -> tuple[str, str]:
    return owner.metadata.namespace, owner.metadata.name


def _format_users(fleet: FleetState, pods: Iterable[FleetPod], *, wide: bool) -> str:
    workloads = {_key(each): each for each in fleet.workloads}
    pods_by_row: dict[tuple[str, str, str, str], list[str]] = {}
    for pod in pods:
        workload = workloads.get((pod.project, pod.workload))
        owner = _owner_name(fleet, workload) if workload else ""
        kind = workload.kind.removeprefix("Pinterest") if workload else ""
        pods_by_row.setdefault((owner, pod.project, pod.workload, kind), []).append(pod.pod)
    rows = [
        [*row, str(len(names)), *([" ".join(sorted(names))] if wide else [])]
        for row, names in sorted(pods_by_row.items())
    ]
    header = ["OWNER", "PROJECT", "WORKLOAD", "KIND", "PODS", *(["NAMES"] if wide else [])]
    return format_table([header, *rows], text_columns=len(header))


def _owner_name(fleet: FleetState, workload: Workload) -> str:
    project = fleet.context.projects.get(workload.metadata.namespace)
    return workload.spec.owner or (project.spec.owner if project else "") or workload.metadata.namespace
