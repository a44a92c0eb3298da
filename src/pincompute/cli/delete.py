"""`pin delete`: a workload ends, and what it became goes with it."""

from __future__ import annotations

import asyncio

import click

from pincompute.cli.port import Where, connect, to_platform


@click.command()
@click.argument("workload")
@to_platform
def delete(where: Where, workload: str) -> None:
    """End a workload and remove what it became."""
    asyncio.run(_delete(where, workload))
    click.echo(f"{workload} deleted")


async def _delete(where: Where, workload: str) -> None:
    async with connect(where) as platform:
        await platform.delete(where.project, workload)
