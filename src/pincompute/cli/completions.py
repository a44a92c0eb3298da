"""Completes names of workloads, replicas, revisions and projects by asking the platform; kinds are known."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from pincompute.base.printable import printable
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_ref import parse_replica_ref, parse_workload_ref, short_kind

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETION_TIMEOUT_S = 2.0
_MAX_REPLICAS = 200
"""Replicas that are offered: a batch may have thousands."""


def complete_workload_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    async def kinds_by_name(platform: PlatformClient, project: str) -> dict[str, str]:
        return {each.name: short_kind(each.kind) for each in await platform.list_summaries(project)}

    return _complete_names(ctx, incomplete, kinds_by_name)


def complete_replica_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Names of workloads; after `web/` those of its replicas, by the end of their names where that is unique."""
    ref, _ = parse_replica_ref(incomplete)
    if not ref.name or "/" not in incomplete:
        return complete_workload_names(ctx, param, incomplete)
    start = incomplete.rpartition("/")[0]

    async def states_by_name(platform: PlatformClient, project: str) -> dict[str, str]:
        replicas = (await platform.describe(project, ref.name)).replicas[:_MAX_REPLICAS]
        ends = Counter(each.name.rpartition("-")[2] for each in replicas)
        short = {each.name: each.name.rpartition("-")[2] for each in replicas}
        return {
            f"{start}/{short[each.name] if ends[short[each.name]] == 1 else each.name}": each.state for each in replicas
        }

    return _complete_names(ctx, incomplete, states_by_name)


def complete_revisions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Revisions of the workload before the option, newest first, with what each changed."""

    # An option without its value ends click's parsing, before the words left over become arguments.
    workload = ctx.params.get("workload") or next(iter(ctx.args), "")

    async def changes_by_number(platform: PlatformClient, project: str) -> dict[str, str]:
        detail = await platform.describe(project, parse_workload_ref(workload).name)
        older = (each for each in reversed(detail.history) if each.number != detail.summary.revision)
        return {str(each.number): printable("; ".join(each.changes)) for each in older}

    return _complete_names(ctx, incomplete, changes_by_number, is_ordered=True)


def complete_kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    from click.shell_completion import CompletionItem

    from pincompute.api.kinds import WORKLOADS

    items = ((short_kind(name), kind.KIND_NAME) for name, kind in WORKLOADS.items())
    return [CompletionItem(name, help=help_) for name, help_ in items if name.startswith(incomplete.lower())]


def complete_project_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    async def owners_by_name(platform: PlatformClient, _: str) -> dict[str, str]:
        return {each.project: each.owner for each in await platform.list_projects()}

    return _complete_names(ctx, incomplete, owners_by_name)


def _complete_names(
    ctx: click.Context,
    incomplete: str,
    fetch: Callable[[PlatformClient, str], Awaitable[dict[str, str]]],
    *,
    is_ordered: bool = False,
) -> list[CompletionItem[str]]:
    """Complete nothing where the platform cannot be asked: an error message would garble the typed line."""
    from click.shell_completion import CompletionItem

    target = Target.of(*(ctx.params.get(each) for each in ("platform", "project", "kubeconfig", "context")))

    async def fetch_from_platform() -> dict[str, str]:
        async with connect(target) as platform, asyncio.timeout(COMPLETION_TIMEOUT_S):
            return await fetch(platform, target.project)

    try:
        names = asyncio.run(fetch_from_platform())
    except Exception:
        return []
    items = names.items() if is_ordered else sorted(names.items())
    return [CompletionItem(name, help=help_) for name, help_ in items if name.startswith(incomplete)]
