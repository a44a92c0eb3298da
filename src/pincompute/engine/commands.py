"""`pin up`, `pin status`, `pin down`, `pin kubectl`: words in, words out."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DISK_FULL, INTERNAL, PLATFORM_DOWN
from pincompute.base.settings import setting
from pincompute.engine.home import Home, home_of, known
from pincompute.engine.progress import Progress

NEIGHBOURS = click.Choice(["kubeflow"])
"""Kubeflow's operator, for training jobs."""

name_option = click.option("--name", metavar="PLATFORM", help="The platform; `main` unless you say so.")


@click.command()
@name_option
@click.option("--nodes", type=int, metavar="N", help="How many simulated nodes it has.")
@click.option("--node-shape", "shape", metavar="SHAPE", help="How big each of them is, such as 32cpu,128Gi.")
@click.option("--zones", type=int, metavar="Z", help="In how many zones they are.")
@click.option("--simulated/--no-simulated", default=None, help="Simulated nodes only, where a real one could be had.")
@click.option("--http-port", type=click.IntRange(1, 65535), metavar="P", help="Where workloads answer; 8080 if free.")
@click.option("--with", "wanted", multiple=True, type=NEIGHBOURS, help="What stands beside it; it stays from then on.")
@click.option("--without", "unwanted", multiple=True, type=NEIGHBOURS, help="What stands beside it no more.")
@click.option("--runtime/--no-runtime", default=None, help="Give workloads the parts that come with it, such as logs.")
@click.option("--bare/--no-bare", default=None, help="Kubernetes alone; what is ours comes by `pin install`.")
@click.option("--install", is_flag=True, help="First install the Debian packages that a real node needs, as root.")
def up(name: str | None, install: bool, **wish: Any) -> None:
    """Start a platform on this machine; what runs already stays."""
    from pincompute.engine import debian
    from pincompute.engine.nodes import machine
    from pincompute.engine.settle import Wish
    from pincompute.engine.up import up as bring_up

    with _told():
        if install:
            debian.bring(*machine.PROGRAMS)
        platform = bring_up(_home(name), Wish(**wish), Path(setting("cache")), Progress())
    click.echo(f"platform {platform.name} is ready")
    click.echo(f"  kubeconfig  {platform.home.kubeconfig}")
    if platform.bare:
        domain = f"localhost:{platform.ports['http']}"
        click.echo(f"next: pin install --kubeconfig {platform.home.kubeconfig} --domain {domain}")
        return
    click.echo(f"  workloads   http://NAME.PROJECT.localhost:{platform.ports['http']}")
    if not platform.real:
        click.echo("  no real node: workloads are simulated, so they count as running and answer nobody")
    click.echo("next: pin deploy hello --image hello:dev --port 8080")


@click.command()
@name_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(name: str | None, output: str) -> None:
    """Show every part of a platform. Ends with 0 when all are ready."""
    from pincompute.engine.status import status_of, text

    with _told():
        seen = status_of(_home(name))
    click.echo(msgspec.json.format(msgspec.json.encode(seen)).decode() if output == "json" else text(seen))
    if not seen.healthy:
        if output == "text":
            click.echo(f"next: pin up --name {seen.name}", err=True)
        sys.exit(1)


@click.command()
@name_option
@click.option("--purge", is_flag=True, help="Forget it: remove all that it kept.")
def down(name: str | None, purge: bool) -> None:
    """End a platform; --purge forgets it."""
    from pincompute.engine.down import down as take_down

    with _told():
        take_down(_home(name), Progress(), purge=purge)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@name_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str | None, arguments: tuple[str, ...]) -> None:
    """Kubernetes' own command line, on a platform."""
    from pincompute.engine.record import read

    home = _home(name)
    known(home)
    record = read(home)
    if record is None or not Path(record.engine, "kubernetes").exists():
        raise Refused(Problem(PLATFORM_DOWN, f"platform '{home.name}' was never up", next=f"pin up --name {home.name}"))
    program = str(Path(record.engine, "kubernetes"))
    variables = {**os.environ, "KUBECONFIG": str(home.kubeconfig)}
    sys.stdout.flush()
    os.execve(program, [program, "kubectl", *arguments], variables)  # noqa: S606


def _home(name: str | None) -> Home:
    return home_of(setting("name", name), Path(setting("state")))


@contextmanager
def _told() -> Iterator[None]:
    """What the machine refuses becomes words as well."""
    try:
        yield
    except OSError as error:
        place = Where(file=str(error.filename or setting("state")))
        if error.errno == errno.ENOSPC:
            problem = Problem(DISK_FULL, "there is no room left on the disk", place, next="free some, then try again")
        else:
            problem = Problem(INTERNAL, f"the machine refused: {error.strerror or error}", place)
        raise Refused(problem) from error
