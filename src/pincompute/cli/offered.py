"""What a shell may complete a name to: a workload's or a project's, of those that there are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from pincompute.cli.port import Port
from pincompute.cli.target import Target, connect
from pincompute.cli.word import plain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATIENCE = 2.0
"""Seconds for which somebody who pressed a key waits for a platform."""


def workload_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Each with its kind."""

    async def there(platform: Port, project: str) -> dict[str, str]:
        return {each.name: plain(each.kind) for each in await platform.all(project)}

    return _offered(ctx, incomplete, there)


def project_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Those that somebody may look at, each with its owner."""

    async def there(platform: Port, _: str) -> dict[str, str]:
        return {each.project: each.owner for each in await platform.projects()}

    return _offered(ctx, incomplete, there)


def _offered(
    ctx: click.Context, incomplete: str, there: Callable[[Port, str], Awaitable[dict[str, str]]]
) -> list[CompletionItem[str]]:
    """Where it cannot be known what there is, nothing is offered: nobody asked to be told why."""
    from click.shell_completion import CompletionItem

    target = Target.of(*(ctx.params.get(each) for each in ("platform", "project", "kubeconfig", "context")))

    async def asked() -> dict[str, str]:
        async with connect(target) as platform, asyncio.timeout(PATIENCE):
            return await there(platform, target.project)

    try:
        found = asyncio.run(asked())
    except Exception:
        return []
    return [CompletionItem(name, help=word) for name, word in sorted(found.items()) if name.startswith(incomplete)]
