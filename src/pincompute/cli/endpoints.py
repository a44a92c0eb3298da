"""`pin endpoints`: the members of a workload's serverset, and the replicas that differ from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from pincompute.api.workload_detail import ReplicaDetail, WorkloadDetail
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NOT_FOR_KIND
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.detail import fetch_detail
from pincompute.cli.durations import format_age
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, platform_options

_HEADER = ("REPLICA", "ADDRESS", "NODE", "MEMBER FOR", "SESSION")


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="Output format for programs.")
@platform_options
def endpoints(target: Target, workload: str, output: str | None) -> None:
    """Show the members of a workload's serverset in ZooKeeper.

    A member is a ready replica, registered by the registrar of its node. Replicas that are ready and no members are
    listed below, with what the registrar says.
    """
    detail = asyncio.run(fetch_detail(target, workload))
    if "serverset" not in detail.resource["spec"]:
        what = f"{detail.summary.name} has no serverset, so that its replicas are not registered"
        next_ = "a service or a stateful set is registered with spec.serverset: {}"
        raise Refused(Problem(NOT_FOR_KIND, what, Where(object=detail.summary.name), next=next_))
    if output:
        members = [each for each in detail.replicas if each.membership]
        click.echo(as_format(output, members), nl=False)
        return
    click.echo(printable(format_members(detail, SystemClock().now())), nl=False)


def format_members(detail: WorkloadDetail, now: datetime) -> str:
    members = [each for each in detail.replicas if each.membership and each.membership.registered]
    missing = [each for each in detail.replicas if each.ready and each not in members]
    stale = [each for each in members if not each.ready]
    name = f"{detail.resource['metadata']['namespace']}/{detail.summary.name}"
    word = "member" if len(members) == 1 else "members"
    lines = [f"serverset {name}: {len(members)} {word}, {len(members) + len(missing) - len(stale)} ready"]
    if members:
        lines += [f"  {line}" for line in _member_table(members, now).splitlines()]
    lines += _differences(detail.summary.name, missing, stale, now)
    return "".join(f"{line}\n" for line in lines)


def _member_table(members: Sequence[ReplicaDetail], now: datetime) -> str:
    rows = [
        (each.name, each.address or "-", each.node, format_age(each.membership.since, now), each.membership.session)
        for each in members
        if each.membership
    ]
    return format_table([_HEADER, *rows], text_columns=3)


def _differences(
    name: str, missing: Sequence[ReplicaDetail], stale: Sequence[ReplicaDetail], now: datetime
) -> Iterator[str]:
    for each in missing:
        reported = each.membership
        why = f"{reported.message}, for {format_age(reported.since, now)}" if reported else "no registrar has reported"
        yield f"  ready and no member: {each.name} on {each.node}: {why}"
    for each in stale:
        yield f"  member and not ready: {each.name} on {each.node}: it is removed within a moment"
    if missing:
        yield f"next: pin why {name}"
