"""`pin pause`: nothing more is replaced, or begins, until somebody resumes it."""

from __future__ import annotations

import click

from pincompute.api.change import Pause
from pincompute.cli.change import make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@click.option("--because", default="", help="Why, for those who will ask.")
@to_platform
def pause(target: Target, workload: str, because: str) -> None:
    """Keep a rollout, a batch or a schedule still."""
    make(target, workload, Pause(by=myself(), because=because), None)
