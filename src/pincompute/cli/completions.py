"""Completes names of workloads and projects, by asking the platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect
from pincompute.cli.workload_ref import short_kind

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETION_TIMEOUT_S = 2.0


def complete_workload_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    async def kinds_by_name(platform: PlatformClient, project: str) -> dict[str, str]:
        return {each.name: short_kind(each.kind) for each in await platform.list_summaries(project)}

    return _complete_names(ctx, incomplete, kinds_by_name)


def complete_project_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    async def owners_by_name(platform: PlatformClient, _: str) -> dict[str, str]:
        return {each.project: each.owner for each in await platform.list_projects()}

    return _complete_names(ctx, incomplete, owners_by_name)


def _complete_names(
    ctx: click.Context, incomplete: str, fetch: Callable[[PlatformClient, str], Awaitable[dict[str, str]]]
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
    return [CompletionItem(name, help=help_) for name, help_ in sorted(names.items()) if name.startswith(incomplete)]
