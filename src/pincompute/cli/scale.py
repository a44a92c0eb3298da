"""`pin scale`: sets the number of replicas, or of tasks that run in parallel."""

from __future__ import annotations

import click

from pincompute.api.change import Scale
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.argument("replicas", type=click.IntRange(0, 10_000))
@follow_options
@platform_options
def scale(target: Target, workload: str, replicas: int, timeout_s: float | None) -> None:
    """Set the number of replicas, or of parallel tasks."""
    change_and_follow(target, workload, Scale(by=local_user(), replicas=replicas), timeout_s)
