"""`pin rollback`: restores a revision whole, with its files and number of replicas."""

from __future__ import annotations

import click

from pincompute.api.change import Rollback
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option("--to", type=click.IntRange(1), default=None, help="Revision, as listed by `pin show`.")
@follow_options
@platform_options
def rollback(target: Target, workload: str, to: int | None, timeout_s: float | None) -> None:
    """Roll a workload back to an earlier revision.

    Without --to, the last revision that differs from the current one.
    """
    change_and_follow(target, workload, Rollback(by=local_user(), to=to or 0), timeout_s)
