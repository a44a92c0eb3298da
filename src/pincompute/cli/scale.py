"""`pin scale`: so many copies, or so many tasks side by side."""

from __future__ import annotations

import click

from pincompute.api.change import Scale
from pincompute.cli.change import followed, make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.argument("copies", type=click.IntRange(0, 10_000))
@followed
@to_platform
def scale(target: Target, workload: str, copies: int, patience: float | None) -> None:
    """Run so many copies, or so many tasks side by side."""
    make(target, workload, Scale(by=myself(), copies=copies), patience)
