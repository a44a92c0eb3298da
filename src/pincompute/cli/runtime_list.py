"""`pin runtime list`: every runtime with its state, its wave, and the number of workloads that run with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec

from pincompute.api.status import READY, SUCCEEDED, find_condition
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.cli.fleet_state import FleetState, fetch_fleet_state
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, platform_options
from pincompute.planning.runtimes.roll_preview import has_finished
from pincompute.planning.runtimes.selection import choose_runtime_if_started_now


class RuntimeView(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime as a list shows it."""

    number: int
    parts: list[str]
    state: str
    """`current`, `next`, `pinned`, `in use`, or empty if no workload has it."""
    wave: str
    """Wave of its roll, such as `2 of 3`; empty if there is none."""
    workloads: int
    """Unfinished workloads that run with it."""
    reason: str
    message: str


@click.command("list")
@click.option("--output", "-o", type=click.Choice(["json", "yaml", "name"]), help="Output format for programs.")
@platform_options
def list_runtimes(target: Target, output: str | None) -> None:
    """List the runtimes, with the workloads that run with each."""
    views = runtime_views(asyncio.run(fetch_fleet_state(target)), SystemClock().now())
    if output == "name":
        click.echo("".join(f"runtime/{each.number}\n" for each in views), nl=False)
    elif output:
        click.echo(as_format(output, views), nl=False)
    elif views:
        click.echo(runtime_table(views))
    else:
        click.echo("this platform has no runtimes        next: pin deploy RUNTIME.yaml", err=True)


def runtime_views(fleet: FleetState, now: datetime) -> list[RuntimeView]:
    counts = workloads_by_runtime(fleet, now)
    return [_view(fleet, number, counts[number]) for number in fleet.runtimes.by_number]


def workloads_by_runtime(fleet: FleetState, now: datetime) -> Counter[int]:
    """Unfinished workloads by the number of their runtime; 0 without one."""
    return Counter(_effective_runtime(fleet, each, now) for each in fleet.workloads if not has_finished(each))


def runtime_table(views: Sequence[RuntimeView]) -> str:
    rows = [
        (
            str(each.number),
            " ".join(each.parts),
            each.state or "-",
            each.wave or "-",
            str(each.workloads),
            each.message or "not reconciled by the operator yet",
        )
        for each in views
    ]
    return format_table([("RUNTIME", "PARTS", "STATE", "WAVE", "WORKLOADS", "MESSAGE"), *rows], text_columns=6)


def _view(fleet: FleetState, number: int, workloads: int) -> RuntimeView:
    runtime, runtimes = fleet.runtimes.by_number[number], fleet.runtimes
    pinned = any(each.spec.hold and each.spec.hold.runtime == number for each in fleet.workloads)
    # A running batch keeps the runtime it began with, unless only images differ.
    in_use = ("pinned" if pinned else "in use") if workloads else ""
    condition = find_condition(runtime.status.conditions, READY)
    return RuntimeView(
        number=number,
        parts=list(runtime.spec.parts),
        state={runtimes.current: "current", runtimes.next: "next"}.get(number, in_use),
        wave=runtime.status.wave,
        workloads=workloads,
        reason=condition.reason if condition else "",
        message=condition.message if condition else "",
    )


def _effective_runtime(fleet: FleetState, owner: Workload, now: datetime) -> int:
    """Return the runtime of a workload's pods.

    Pods of a running batch may be updated in place, to a runtime that its immutable Kubernetes objects never get.
    """
    status = owner.status
    all_updated = owner.GOAL == SUCCEEDED and 0 < status.updated_in_place == status.replicas
    return choose_runtime_if_started_now(owner, fleet.runtimes, now).number if all_updated else status.runtime
