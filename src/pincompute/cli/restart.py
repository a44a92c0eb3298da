"""`pin restart`: every copy is made anew, within the rules of its rollout."""

from __future__ import annotations

import click

from pincompute.api.change import Restart
from pincompute.cli.change import followed, make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@followed
@to_platform
def restart(target: Target, workload: str, patience: float | None) -> None:
    """Make every copy anew, as its rollout says."""
    make(target, workload, Restart(by=myself()), patience)
