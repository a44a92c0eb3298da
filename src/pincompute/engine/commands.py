"""The commands `pin up`, `pin status`, `pin down` and `pin kubectl`.

Implementations are imported inside the functions, as the command table loads this module for `--help`, too.
"""

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
from pincompute.base.progress import Progress
from pincompute.base.reasons import DISK_FULL, INTERNAL, PLATFORM_DOWN
from pincompute.base.settings import setting_value
from pincompute.engine.home import Home, home_of, require_platform

ADDONS = click.Choice(["kubeflow", "prometheus", "zookeeper"])
"""`kubeflow`: Kubeflow's training operator, which PinterestTrainingJob needs. `prometheus`: metrics of the platform,
with alerts. `zookeeper`: service discovery by serversets."""

name_option = click.option("--name", metavar="PLATFORM", help="Name of the platform. Default: main.")


@click.command()
@name_option
@click.option("--nodes", type=int, metavar="N", help="Number of simulated nodes.")
@click.option("--node-shape", metavar="SHAPE", help="Size of a simulated node, such as 32cpu,128Gi.")
@click.option("--zones", type=int, metavar="Z", help="Number of zones of the simulated nodes.")
@click.option("--simulated/--no-simulated", default=None, help="No real node, even if this machine can run one.")
@click.option(
    "--http-port", type=click.IntRange(1, 65535), metavar="P", help="Port of the ingress. Default: 8080 if free."
)
@click.option(
    "--with", "with_addons", multiple=True, type=ADDONS, help="Enable an add-on. It stays enabled at later starts."
)
@click.option("--without", "without_addons", multiple=True, type=ADDONS, help="Disable an add-on.")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT,…",
    help="Ensemble in which workloads are registered, instead of --with zookeeper. Empty for none.",
)
@click.option("--runtime/--no-runtime", default=None, help="Create the bundled runtimes: identity, logs and endpoints.")
@click.option("--bare/--no-bare", default=None, help="Kubernetes without PinCompute, for `pin install`.")
@click.option("--install", is_flag=True, help="First install the Debian packages of a real node. Needs root.")
def up(name: str | None, install: bool, **options: Any) -> None:
    """Start a platform on this machine, or change the options of a running one.

    Options that are not given keep their values. Healthy parts are not restarted.
    """
    from pincompute.engine import debian
    from pincompute.engine.nodes import machine
    from pincompute.engine.up import up as start_platform
    from pincompute.engine.up_options import UpOptions

    with _os_errors_as_problems():
        if install:
            debian.ensure_programs(*machine.PROGRAMS)
        platform = start_platform(_home(name), UpOptions(**options), Path(setting_value("cache")), Progress())
    click.echo(f"platform {platform.name}: ready")
    click.echo(f"  kubeconfig  {platform.home.kubeconfig}")
    if platform.bare:
        domain = f"localhost:{platform.ports['http']}"
        click.echo(f"next: pin install --kubeconfig {platform.home.kubeconfig} --domain {domain}")
        return
    click.echo(f"  workloads   http://NAME.PROJECT.localhost:{platform.ports['http']}")
    if not platform.real:
        click.echo("  no real node: pods are simulated; they count as running, and answer no requests")
    click.echo("next: pin deploy hello --image hello:dev --port 8080")


@click.command()
@name_option
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", show_default=True)
def status(name: str | None, output: str) -> None:
    """Show the state of every part of a platform. Exit code 0 if all are ready, else 1."""
    from pincompute.engine.status import platform_status, render_status

    with _os_errors_as_problems():
        platform = platform_status(_home(name))
    click.echo(
        msgspec.json.format(msgspec.json.encode(platform)).decode()
        if output == "json"
        else render_status(platform, wide=output == "wide")
    )
    if not platform.healthy:
        if output != "json":
            click.echo(f"next: pin up --name {platform.name}", err=True)
        sys.exit(1)


@click.command()
@name_option
@click.option("--purge", is_flag=True, help="Also delete all data and the record of the platform.")
def down(name: str | None, purge: bool) -> None:
    """Stop a platform. Its data is kept, unless --purge is given."""
    from pincompute.engine.down import down as bring_down

    with _os_errors_as_problems():
        bring_down(_home(name), Progress(), purge=purge)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@name_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str | None, arguments: tuple[str, ...]) -> None:
    """Run kubectl on a platform."""
    from pincompute.engine.record import read_record

    home = _home(name)
    require_platform(home)
    record = read_record(home)
    if record is None or not Path(record.engine, "kubernetes").exists():
        raise Refused(
            Problem(
                PLATFORM_DOWN, f"platform '{home.name}' has not been started yet", next=f"pin up --name {home.name}"
            )
        )
    program = str(Path(record.engine, "kubernetes"))
    variables = {**os.environ, "KUBECONFIG": str(home.kubeconfig)}
    sys.stdout.flush()
    os.execve(program, [program, "kubectl", *arguments], variables)  # noqa: S606


def _home(name: str | None) -> Home:
    return home_of(setting_value("name", name), Path(setting_value("state")))


@contextmanager
def _os_errors_as_problems() -> Iterator[None]:
    """Turn errors of the operating system into Problems."""
    try:
        yield
    except OSError as error:
        place = Where(file=str(error.filename or setting_value("state")))
        if error.errno == errno.ENOSPC:
            problem = Problem(DISK_FULL, "disk full", place, next="free disk space, then run the same command again")
        else:
            problem = Problem(INTERNAL, f"operating system error: {error.strerror or error}", place)
        raise Refused(problem) from error
