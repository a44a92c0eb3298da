"""`pin restart`: replaces every replica, within the limits of its rollout."""

from __future__ import annotations

import click

from pincompute.api.change import Restart
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@follow_options
@platform_options
def restart(target: Target, workload: str, timeout_s: float | None) -> None:
    """Restart every replica by a rollout."""
    change_and_follow(target, workload, Restart(by=local_user()), timeout_s)
