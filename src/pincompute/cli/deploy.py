"""`pin deploy`: from a typed line, or a file, to an address that answers, or to the end of the work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import click

from pincompute.api.glass import Wish
from pincompute.api.summary import Summary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID, USAGE
from pincompute.cli.follow import Timer, follow
from pincompute.cli.port import Port
from pincompute.cli.span import seconds
from pincompute.cli.target import Target, connect, to_platform

_MARKS = ("---", "...")
"""Where a document of YAML begins or ends, whatever stands around it."""


@click.command()
@click.argument("given", nargs=-1, required=True, type=click.Path(), metavar="NAME_OR_FILES...")
@click.option("--image", help="The container image; with --port, the file is written for you.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port that the program listens on.")
@click.option("--version", help="The published build to run; what it says and which images is all in it.")
@click.option(
    "--break-glass", "because", metavar="WHY", help="Bring in what nobody has reviewed: on record, for a while."
)
@click.option("--for", "span", default="4h", help="For how long, such as 30m; 24h at most.", show_default=True)
@click.option("--replicas", type=click.IntRange(0, 10_000), default=1, help="How many copies.", show_default=True)
@click.option("--simulated", is_flag=True, help="Pretend to run it, on a simulated node.")
@click.option("--timeout", default=120.0, help="Seconds to follow it at most.", show_default=True)
@click.option("--yes", "-y", is_flag=True, help="Do not show what a published version changes, and ask.")
@click.option("--no-wait", is_flag=True, help="Submit, and do not follow.")
@to_platform
def deploy(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    given: tuple[str, ...],
    image: str | None,
    port: int | None,
    version: str | None,
    because: str | None,
    span: str,
    replicas: int,
    simulated: bool,
    timeout: float,
    no_wait: bool,
    yes: bool,
) -> None:
    """Run a workload and follow it to its goal.

    NAME_OR_FILES is a file such as hello.yaml, or a name: of what was published as --version, or for which a file is
    written. Several files, a folder, or a file of several documents are a set: taken whole or not at all. In an
    emergency --break-glass goes past the reviews of a project.
    """
    patience = None if no_wait else timeout
    wish = None if because is None else Wish(because, seconds(span))
    after = "after that what runs goes on, and only what was reviewed changes it"
    told = f"the glass is broken for {span}, on record; {after}" if wish else ""
    if version is None and image is None and port is None and not _alone(given):
        # Only who may have brought several documents waits until they are read.
        from pincompute.cli.files import several

        documents = several([Path(each) for each in given])
        if len(documents) > 1:
            # Only who deploys a set needs it.
            from pincompute.cli.deploy_set import deploy_set

            asyncio.run(deploy_set(target, documents, wish, patience, told))
            return
        given = (documents[0].file,) if documents else given
    name_or_file = _only(given)
    if version is not None:
        if not yes and wish is None and sys.stdin.isatty():
            asyncio.run(_ask(target, name_or_file, version))
        asyncio.run(_deploy(target, partial(_published, target, name_or_file, version, wish), patience, told))
        return
    if image is None and port is None:
        file = Path(name_or_file)
        asyncio.run(_deploy(target, partial(_sent, target, _read(file, name_or_file), file, wish), patience, told))
    else:
        # Only who types a service needs to know how one is written.
        from pincompute.cli.short_form import short_form

        text = short_form(name_or_file, image, port, replicas, simulated=simulated)
        file = Path(f"{name_or_file}.yaml")
        asyncio.run(_deploy(target, partial(_written, target, text, file, wish), patience, told))


def _alone(given: tuple[str, ...]) -> bool:
    """Whether it is seen at a glance, and without YAML, that there is one document at most."""
    try:
        return len(given) == 1 and not any(line.startswith(_MARKS) for line in Path(given[0]).read_text().splitlines())
    except IsADirectoryError:
        return False
    except (OSError, UnicodeDecodeError):
        # That is told where it is sent.
        return True


def _only(given: tuple[str, ...]) -> str:
    if len(given) > 1:
        what = f"{len(given)} are named, and only files are deployed together"
        raise Refused(Problem(USAGE, what, next=f"pin deploy {given[0]} …, and then each of the others"))
    return given[0]


async def _published(target: Target, name: str, version: str, wish: Wish | None, platform: Port) -> Summary:
    return await platform.deploy(target.project, name, version, wish)


async def _ask(target: Target, name: str, version: str) -> None:
    """Whoever is in an emergency is not asked."""
    # Only on a terminal is it needed, and it knows every kind.
    from pincompute.cli.plan import ask, build_told

    found = await ask(target, name, version)
    click.echo(build_told(found), err=True, nl=False)
    if not found.refused:
        click.confirm("Deploy it?", abort=True, err=True)


async def _sent(target: Target, text: str, file: Path, wish: Wish | None, platform: Port) -> Summary:
    return await platform.submit(text, str(file), target.project, wish)


async def _written(target: Target, text: str, file: Path, wish: Wish | None, platform: Port) -> Summary:
    """A file that is written for whoever types a name."""
    from pincompute.cli.short_form import write

    write(file, text, target.project)
    return await _sent(target, text, file, wish, platform)


async def _deploy(
    target: Target, submit: Callable[[Port], Awaitable[Summary]], patience: float | None, told: str = ""
) -> None:
    timer = Timer.start(SystemClock(), patience or 0.0)
    async with connect(target) as platform:
        submitted = await submit(platform)
        if told:
            click.echo(told, err=True)
        if patience is None:
            click.echo(f"{submitted.label}  submitted        next: pin get {submitted.name}")
            return
        running = await follow(platform, submitted, timer)
    if running.simulated:
        nothing = f", and nothing answers at {running.address}" if running.address else ""
        click.echo(f"{running.label} is simulated: no program runs{nothing}", err=True)
    else:
        click.echo(f"{running.address or running.message}        next: pin logs {running.name}")


def _read(file: Path, given: str) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        hint = f"pin deploy {file.stem} --image IMAGE --port 8080"
        raise Refused(Problem(USAGE, f"there is no file '{given}'", next=hint)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"the file cannot be read: {error}", Where(str(file)))) from error
