"""`pin resume`: what was paused goes on."""

from __future__ import annotations

import click

from pincompute.api.change import Resume
from pincompute.cli.change import followed, make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@followed
@to_platform
def resume(target: Target, workload: str, patience: float | None) -> None:
    """Let go on what was paused."""
    make(target, workload, Resume(by=myself()), patience)
