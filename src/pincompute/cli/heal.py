"""`pin heal`: what was broken on purpose is again what it was before."""

from __future__ import annotations

import click

from pincompute.api.change import Heal
from pincompute.cli.change import followed, make, myself
from pincompute.cli.offered import workload_names
from pincompute.cli.target import Target, to_platform


@click.command()
@click.argument("workload", shell_complete=workload_names)
@followed
@to_platform
def heal(target: Target, workload: str, patience: float | None) -> None:
    """Make well again what was broken on purpose."""
    make(target, workload, Heal(by=myself()), patience)
