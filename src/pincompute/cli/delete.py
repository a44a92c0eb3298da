"""`pin delete`: a workload ends, and what it became goes with it."""

from __future__ import annotations

import asyncio

import click

from pincompute.cli.target import Target, connect, to_platform


@click.command()
@click.argument("workload")
@to_platform
def delete(target: Target, workload: str) -> None:
    """End a workload and remove what it became."""
    asyncio.run(_delete(target, workload))
    click.echo(f"{workload} deleted")


async def _delete(target: Target, workload: str) -> None:
    async with connect(target) as platform:
        await platform.delete(target.project, workload)
