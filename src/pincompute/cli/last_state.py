"""`pin show --deleted`: the last known state of a workload, from the history."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pincompute.api.history import LastState
from pincompute.base.printable import printable
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_ref import parse_workload_ref


async def show_last_state(target: Target, workload: str, output: str) -> None:
    ref = parse_workload_ref(workload)
    async with connect(target) as platform:
        state = await platform.last_state(target.project, ref.name)
    ref.require_kind(state.workload.kind)
    # A message may quote the last line of a tenant's program.
    click.echo(as_format(output, state) if output else printable(format_last_state(state)), nl=False)


def format_last_state(state: LastState) -> str:
    return "".join(f"{line}\n" for line in _lines(state))


def _lines(state: LastState) -> Iterator[str]:
    workload = state.workload
    when = f"deleted at {state.deleted_at}" if state.deleted_at else f"exists, last changed at {state.seen_at}"
    yield f"{workload.label}  {workload.kind.removeprefix('Pinterest')}  {when}"
    yield f"  {'created':<9}{workload.created_at}"
    yield f"  {'image':<9}{workload.image}"
    yield f"  {'ready':<9}{workload.ready_text}"
    yield f"  {'reason':<9}{workload.reason}{f': {workload.message}' if workload.message else ''}"
    if state.revision_changes:
        yield f"  {'revision':<9}{'; '.join(state.revision_changes)}"
    if state.replicas:
        yield "replicas"
        rows = [("NAME", "NODE", "STATE", "RESTARTS")]
        rows += [(each.name, each.node or "-", each.state, str(each.restarts)) for each in state.replicas]
        yield from (f"  {line}" for line in format_table(rows, text_columns=3).splitlines())
    yield f"next: pin history {workload.name}"
