"""`pin rollback`: restores the content of a revision, with its files and the images that it ran."""

from __future__ import annotations

import click

from pincompute.api.change import Rollback
from pincompute.cli.change import change_and_follow, follow_options, local_user
from pincompute.cli.completions import complete_revisions, complete_workload_names
from pincompute.cli.target import Target, platform_options


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option(
    "--to",
    type=click.IntRange(1),
    default=None,
    shell_complete=complete_revisions,
    help="Revision, as listed by `pin show`.",
)
@click.option("--partial", is_flag=True, help="Also if the digest of an image was not recorded.")
@follow_options
@platform_options
def rollback(target: Target, workload: str, to: int | None, timeout_s: float | None, *, partial: bool) -> None:
    """Roll a workload back to an earlier revision: its files, settings, and images by digest.

    Without --to, the last revision that differs from the current one. The number of replicas stays.
    """
    change_and_follow(target, workload, Rollback(by=local_user(), to=to or 0, partial=partial), timeout_s)
