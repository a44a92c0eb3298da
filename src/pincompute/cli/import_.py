"""`pin import`: an existing Deployment as a short file, and as a workload without a copy being made anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from pincompute.base.context import read_context
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.base.settings import setting
from pincompute.cli.target import Target, to_platform
from pincompute.cli.written import written
from pincompute.controller.importing import hand_over, look, settled, taken_over
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load, usual
from pincompute.objects.content import identity
from pincompute.planning.importing import Imported, imported
from pincompute.planning.importing.whose import holders

_KINDS = ("deployment", "deployments", "deploy", "deployment.apps", "deployments.apps")


class Wish(NamedTuple):
    """What a person asked for."""

    name: str
    called: str
    port: int
    file: Path | None
    adopt: bool
    dry: bool
    take_over: bool


@click.command("import")
@click.argument("native")
@click.option("--namespace", "-n", default="", help="Where it is; the project unless you say so.")
@click.option("--as", "called", default="", help="What the workload is called; the same unless you say so.")
@click.option("--port", type=click.IntRange(1, 65535), default=None, help="Where it listens, if nothing says so.")
@click.option("--output", "-o", "file", type=click.Path(path_type=Path), help="Write the file there.")
@click.option("--adopt", is_flag=True, help="Make it a workload, with the copies that run.")
@click.option("--dry-run", "dry", is_flag=True, help="With --adopt: say each step, and do none.")
@click.option("--take-over", is_flag=True, help="Also what another tool keeps.")
@to_platform
def import_(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    native: str,
    namespace: str,
    called: str,
    port: int | None,
    file: Path | None,
    adopt: bool,
    dry: bool,
    take_over: bool,
) -> None:
    """Show an existing Deployment as a short file, or take it over.

    NATIVE is such as deployment/web. Nothing is changed without --adopt, and no copy is made anew with it.
    """
    if dry and not adopt:
        raise Refused(Problem(USAGE, "--dry-run says what --adopt would do", next="--adopt --dry-run"))
    wish = Wish(_named(native), called, port or 0, file, adopt, dry, take_over)
    asyncio.run(_import(_access(target), namespace or target.project, wish))


async def _import(access: Access, namespace: str, wish: Wish) -> None:
    async with Client(access, agent="pin") as client:
        found = await look(client, namespace, wish.name)
        done = imported(found, wish.called, wish.port)
        held = tuple(holders(done.taken))
        _give(written(done.document), wish)
        for line in _told(done):
            click.echo(line, err=True)
        if not wish.adopt:
            for each in (*done.lost, *held):
                click.echo(each.text(), err=True)
            return
        refuse_all((*done.lost, *(() if wish.take_over else held)))
        settled(found)
        for number, line in enumerate(_steps(done), 1):
            click.echo(f"{number}. {line}", err=True)
        if wish.dry:
            return
        await hand_over(client, done)
        await taken_over(client, done)
    metadata = done.workload.metadata
    click.echo(f"{metadata.name} is a workload now, and its copies are those that ran", err=True)
    click.echo(f"next: pin resume {metadata.name}, or deploy its file: then they are made anew, as it says", err=True)


def _named(said: str) -> str:
    kind, slash, name = said.partition("/")
    if not slash or kind.lower() not in _KINDS or not name:
        what = f"'{said}' is no Deployment's name" if slash else f"'{said}' does not say of what kind it is"
        note = "other kinds cannot be imported yet" if slash else ""
        raise Refused(Problem(USAGE, what, note=note, next=f"pin import deployment/{name or kind}"))
    return name


def _access(target: Target) -> Access:
    """Straight to the cluster: what is not ours yet, no desk knows."""
    if target.direct:
        return load(target.kubeconfig or usual(), target.context)
    return load(read_context(Path(setting("state")), target.name).kubeconfig)


def _give(text: str, wish: Wish) -> None:
    if wish.file is None:
        click.echo(text, nl=False)
        return
    if wish.file.exists() and wish.file.read_text() != text:
        what = f"{wish.file} exists and says something else"
        raise Refused(Problem(USAGE, what, next="remove it, or name another"))
    wish.file.write_text(text)
    click.echo(f"{wish.file} written ({text.count(chr(10))} lines)", err=True)


def _told(done: Imported) -> Iterator[str]:
    if done.differs:
        yield "otherwise, once its copies are made anew:"
        yield from (f"  {each}" for each in done.differs)
    if done.beside:
        yield f"beside it, as they are: {', '.join(done.beside)}"


def _steps(done: Imported) -> Iterator[str]:
    """In the order in which they are done, by whom, and what they leave alone."""
    deployment, *others = done.taken
    metadata = done.workload.metadata
    stays = [identity(each) for each in others if each["metadata"]["name"] == metadata.name]
    goes = [identity(each) for each in others if each["metadata"]["name"] != metadata.name]
    yield f"labelled with the workload's name: {', '.join(map(identity, done.taken))}, its ReplicaSets"
    yield f"written: PinterestService/{metadata.name}, its rollout held; the operator does the rest"
    yield f"removed without its copies, and made again, held: {identity(deployment)}"
    yield "found by the new one: its ReplicaSets; and then labelled, with their copies"
    if done.new:
        yield f"made: {', '.join(done.new)}"
    if stays:
        yield f"taken over as they serve: {', '.join(stays)}"
    if goes:
        yield f"removed, as the workload has its own: {', '.join(goes)}"
