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
    """Build, load and list images of a platform."""


@image.command("load")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "names", metavar="NAME:TAG", multiple=True, help="Name of the image; repeat for several names.")
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Dockerfile. Default: Containerfile or Dockerfile of the folder.",
)
@click.option("--build-arg", "arguments", metavar="NAME=VALUE", multiple=True, help="Value of an ARG; repeatable.")
@click.option("--target", metavar="STAGE", default="", help="Stage to build. Default: the last one.")
@platform_option
def load_command(  # noqa: PLR0913, PLR0917  (one for each option)
    source: Path,
    names: tuple[str, ...],
    file: Path | None,
    arguments: tuple[str, ...],
    target: str,
    name: str | None,
) -> None:
    """Load an image into the registry of a platform.

    SOURCE is a file from `docker save`, an OCI archive, a folder in OCI layout, or a folder with a Dockerfile, which is
    built first, in a sandbox without network.
    """
    build = builder.Build(source, file, _parse_arguments(arguments), target)
    for loaded in asyncio.run(_load(_context(name), build, names)):
        click.echo(loaded.text())


@image.command("list")
@platform_option
def list_command(name: str | None) -> None:
    """List the images in the registry of a platform."""
    for image_reference in asyncio.run(list_known_images(_context(name))):
        click.echo(image_reference)


def _parse_arguments(arguments: Sequence[str]) -> dict[str, str]:
    if wrong := next((each for each in arguments if not each.partition("=")[1] or each.startswith("=")), ""):
        raise click.BadParameter(f"'{wrong}' must be NAME=VALUE", param_hint="--build-arg")
    return {name: value for name, _, value in (each.partition("=") for each in arguments)}


async def _load(context: Context, build: builder.Build, names: Sequence[str]) -> list[LoadedImage]:
    progress, source = Progress(), build.folder
    async with registry_for(context) as registry:
        if build == builder.Build(source) and not builder.find_containerfile(source):
            return await load_images(registry, source, names)
        _check_folder(build)
        if build == builder.Build(source) and _is_clone(source):
            return await own_image.push_own_image(registry, progress, names or [own_image.NAME])
        names = _names(source, names)
        with builder.build_folder(progress) as folder:
            archive = folder / "image.tar"
            await builder.build_image(registry, build, archive, progress)
            return await load_images(registry, archive, names)


def _check_folder(build: builder.Build) -> None:
    if not build.folder.is_dir():
        raise click.UsageError(f"{build.folder} is not a folder: --file, --build-arg and --target are for builds")
    if build.file and not build.file.is_file():
        raise click.UsageError(f"{build.file}: no such file")
    if not build.file and not builder.find_containerfile(build.folder):
        raise click.UsageError(f"{build.folder} has no Dockerfile: name it with --file")


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
