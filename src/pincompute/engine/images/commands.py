"""`pin image`: bring images in, and list them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from pincompute.base.context import Context, read_context
from pincompute.base.settings import setting
from pincompute.engine.images import building, own_image
from pincompute.engine.images.loading import Loaded, image_name, load
from pincompute.engine.progress import Progress
from pincompute.kube.registry import known, registry_of

platform_option = click.option("--name", metavar="PLATFORM", help="The platform; `main` unless you say so.")


@click.group()
def image() -> None:
    """Bring images in, and list them."""


@image.command("load")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "called", metavar="NAME:TAG", multiple=True, help="The name that the image shall have, or names.")
@platform_option
def load_command(source: Path, called: tuple[str, ...], name: str | None) -> None:
    """Bring an image into a platform.

    SOURCE is a file that `docker save` wrote, an OCI archive, a folder in OCI layout, or a folder with a Containerfile,
    which is built first.
    """
    for each in asyncio.run(_load(_context(name), source, called)):
        click.echo(each.text())


@image.command("list")
@platform_option
def list_command(name: str | None) -> None:
    """List the images that a platform has."""
    for each in asyncio.run(known(_context(name))):
        click.echo(each)


async def _load(context: Context, source: Path, called: Sequence[str]) -> list[Loaded]:
    progress = Progress()
    async with registry_of(context) as registry:
        if not building.containerfile(source):
            return await load(registry, source, called)
        if _is_clone(source):
            return await own_image.bring(registry, progress, called or [own_image.NAME])
        names = _names(source, called)
        with building.workshop(progress) as shop:
            archive = shop / "image.tar"
            building.build(shop, source, archive, progress)
            return await load(registry, archive, names)


def _is_clone(folder: Path) -> bool:
    """Ours is built with all that it needs beside it, and seldom."""
    return folder.resolve() == own_image.ROOT


def _names(folder: Path, called: Sequence[str]) -> Sequence[str]:
    """Known to be right before anything is built."""
    names = called or [f"{folder.resolve().name}:dev"]
    for each in names:
        image_name(each, folder)
    return names


def _context(name: str | None) -> Context:
    return read_context(Path(setting("state")), setting("name", name))
