"""The commands `pin image load` and `pin image list`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from pincompute.base.platform_context import Context, read_context
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.images import builder, own_image
from pincompute.engine.images.loading import LoadedImage, checked_image_name, load_images
from pincompute.kube.image_registry import list_known_images, registry_for

platform_option = click.option("--name", metavar="PLATFORM", help="Name of the platform. Default: main.")


@click.group()
def image() -> None:
    """Load and list images of a platform."""


@image.command("load")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "names", metavar="NAME:TAG", multiple=True, help="Name of the image; repeat for several names.")
@platform_option
def load_command(source: Path, names: tuple[str, ...], name: str | None) -> None:
    """Load an image into the registry of a platform.

    SOURCE is a file from `docker save`, an OCI archive, a folder in OCI layout, or a folder with a Containerfile, which
    is built first.
    """
    for loaded in asyncio.run(_load(_context(name), source, names)):
        click.echo(loaded.text())


@image.command("list")
@platform_option
def list_command(name: str | None) -> None:
    """List the images in the registry of a platform."""
    for image_reference in asyncio.run(list_known_images(_context(name))):
        click.echo(image_reference)


async def _load(context: Context, source: Path, names: Sequence[str]) -> list[LoadedImage]:
    progress = Progress()
    async with registry_for(context) as registry:
        if not builder.find_containerfile(source):
            return await load_images(registry, source, names)
        if _is_clone(source):
            return await own_image.push_own_image(registry, progress, names or [own_image.NAME])
        names = _names(source, names)
        with builder.build_folder(progress) as work_folder:
            archive = work_folder / "image.tar"
            builder.build_image(work_folder, source, archive, progress)
            return await load_images(registry, archive, names)


def _is_clone(folder: Path) -> bool:
    """Whether the folder is the source of PinCompute: its image is built with prefetched packages, and cached."""
    return folder.resolve() == own_image.ROOT


def _names(folder: Path, names: Sequence[str]) -> Sequence[str]:
    """Names of the image, validated before it is built."""
    names = names or [f"{folder.resolve().name}:dev"]
    for text in names:
        checked_image_name(text, folder)
    return names


def _context(name: str | None) -> Context:
    return read_context(Path(setting_value("state")), setting_value("name", name))
