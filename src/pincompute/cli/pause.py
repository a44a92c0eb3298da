"""`pin pause`: pauses a rollout, a batch or a schedule, until it is resumed."""

from __future__ import annotations

import click

from pincompute.api.change import Pause
from pincompute.cli.change import change_and_follow, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--because", default="", help="Reason, shown in the workload's status.")
@platform_options
def pause(target: Target, workload: str, because: str) -> None:
    """Pause a rollout, a batch or a schedule."""
    change_and_follow(target, workload, Pause(by=local_user(), because=because), None)
