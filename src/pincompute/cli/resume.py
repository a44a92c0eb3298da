"""`pin resume`: resumes a paused rollout, batch or schedule."""

from __future__ import annotations

import click

from pincompute.api.change import Resume
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@follow_options
@platform_options
def resume(target: Target, workload: str, timeout_s: float | None) -> None:
    """Resume a paused rollout, batch or schedule."""
    change_and_follow(target, workload, Resume(by=local_user()), timeout_s)
