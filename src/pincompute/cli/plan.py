"""`pin plan`: what a file would become, without a cluster and without doing it."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.noun import Noun
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.base.settings import setting
from pincompute.objects.content import identity
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Cluster, Snapshot

# What `pin up` makes; nothing is asked, so that it works everywhere and at once.
LAPTOP = Cluster(name="main", domain="localhost", port=8080)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Choice(["yaml"]), help="The natives, whole.")
@click.option("--project", "-p", help="The project; yours by default.")
def plan(files: tuple[Path, ...], output: str | None, project: str | None) -> None:
    """Show what a file would become, without doing it."""
    clock = SystemClock()
    workloads = _all(files, setting("project", project))
    for workload in workloads:
        wanted = PLANNERS[workload.kind](Snapshot(workload, (), (), LAPTOP, clock.now())).wanted
        if output == "yaml":
            click.echo(yaml.safe_dump_all(wanted, sort_keys=False, explicit_start=True), nl=False)
        else:
            metadata = workload.metadata
            click.echo(f"{workload.kind} {metadata.namespace}/{metadata.name} would become")
            for native in wanted:
                click.echo(f"  {identity(native)}")


def _all(files: tuple[Path, ...], project: str) -> list[Noun]:
    """Taken whole or not at all: the problems of every file are told together."""
    workloads: list[Noun] = []
    problems: list[Problem] = []
    for file in files:
        try:
            workloads += [admit(document, project) for document in read(_text(file), str(file))]
        except Refused as refused:
            problems += refused.problems
    refuse_all(problems)
    return workloads


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(Problem(USAGE, f"'{file}' cannot be read: {error}")) from error
