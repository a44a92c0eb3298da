"""`pin image`: bring images in, and list them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from pincompute.base.context import Context, read_context
from pincompute.base.settings import setting
from pincompute.engine import image_build
from pincompute.engine.images import Loaded, load
from pincompute.engine.progress import Progress
from pincompute.kube.registry import known, registry_of

platform_option = click.option("--name", metavar="PLATFORM", help="The platform; `main` unless you say so.")


@click.group()
def image() -> None:
    """Bring images in, and list them."""


@image.command("load")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "called", metavar="NAME:TAG", default="", help="The name that the image shall have.")
@platform_option
def load_command(source: Path, called: str, name: str | None) -> None:
    """Bring an image into a platform.

    SOURCE is a file that `docker save` wrote, an OCI archive, a folder in OCI layout, or a folder with a Containerfile,
    which is built first.
    """
    context = _context(name)
    if source.is_dir() and image_build.containerfile(source):
        loaded = _build_and_load(context, source, called or f"{source.resolve().name}:dev")
    else:
        loaded = asyncio.run(_load(context, source, called))
    for each in loaded:
        click.echo(each.text())


@image.command("list")
@platform_option
def list_command(name: str | None) -> None:
    """List the images that a platform has."""
    for each in asyncio.run(known(_context(name))):
        click.echo(each)


def _build_and_load(context: Context, folder: Path, called: str) -> list[Loaded]:
    progress = Progress()
    with image_build.workshop(progress) as shop:
        archive = shop / "image.tar"
        image_build.build(shop, folder, archive, progress)
        return asyncio.run(_load(context, archive, called))


async def _load(context: Context, source: Path, called: str) -> list[Loaded]:
    async with registry_of(context) as registry:
        return await load(registry, source, called)


def _context(name: str | None) -> Context:
    return read_context(Path(setting("state")), setting("name", name))
