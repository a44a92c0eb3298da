"""`pin rollback`: a workload becomes again what it was, with its files, copies and all."""

from __future__ import annotations

import click

from pincompute.api.change import Rollback
from pincompute.cli.change import followed, make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--to", type=click.IntRange(1), default=None, help="The revision, as `pin show` lists them.")
@followed
@to_platform
def rollback(target: Target, workload: str, to: int | None, patience: float | None) -> None:
    """Make a workload what it was before.

    Without --to, what it was when it was last otherwise than now.
    """
    make(target, workload, Rollback(by=myself(), to=to or 0), patience)
