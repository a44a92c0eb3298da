"""`pin heal`: removes an injected fault."""

from __future__ import annotations

import click

from pincompute.api.change import Heal
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@follow_options
@platform_options
def heal(target: Target, workload: str, timeout_s: float | None) -> None:
    """Remove an injected fault, and restore the revision before it."""
    change_and_follow(target, workload, Heal(by=local_user()), timeout_s)
