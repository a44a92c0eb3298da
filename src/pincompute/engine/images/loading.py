"""Brings images that were built elsewhere into a platform's registry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import IMAGE_NAME_INVALID
from pincompute.engine.images.archive import Archive, chunks, invalid, opened
from pincompute.engine.images.contents import Blob, Contents, contents
from pincompute.kube.registry import Registry, Upload
from pincompute.objects.image import ImageName, parse


class Loaded(NamedTuple):
    """What was done with one image."""

    name: str
    size: int
    layers: int
    new: int

    def text(self) -> str:
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"{self.name}  {self.size / 1e6:.1f} MB  {layers}, {self.new} new"


async def load(registry: Registry, source: Path, names: Sequence[str] = ()) -> list[Loaded]:
    """Send every image of an archive or layout to the registry; names given beat those it brings."""
    with opened(source) as archive:
        return await send(registry, archive, names)


async def send(registry: Registry, archive: Archive, names: Sequence[str]) -> list[Loaded]:
    images = list(contents(archive))
    if names and len(images) > 1:
        raise invalid(archive.source, f"{len(images)} images are in it, and a name is given")
    wanted = [(image, target) for image in images for target in _targets(archive, image, names)]
    return [await _send(registry, archive, image, target) for image, target in wanted]


def _targets(archive: Archive, image: Contents, names: Sequence[str]) -> list[ImageName]:
    """The names that an image shall have."""
    names = names or image.names
    if not names:
        raise Refused(
            Problem(
                IMAGE_NAME_INVALID,
                "the image says no name of its own",
                Where(file=str(archive.source)),
                next=f"pin image load {archive.source} --as NAME:TAG",
            )
        )
    return [image_name(each, archive.source) for each in names]


def image_name(text: str, source: Path) -> ImageName:
    """A name that something from the source can have."""
    where = Where(file=str(source))
    try:
        name = parse(text)
    except ValueError as error:
        what = f"'{text}' cannot be the name of an image"
        raise Refused(Problem(IMAGE_NAME_INVALID, what, where, note=str(error))) from error
    if name.digest:
        raise Refused(Problem(IMAGE_NAME_INVALID, f"'{text}' is a digest, which nobody can choose", where))
    return name


async def _send(registry: Registry, archive: Archive, image: Contents, target: ImageName) -> Loaded:
    """What the registry has already is not sent again; the manifest goes last, so that an image is whole or absent."""
    sent = [blob for blob in (*image.layers, image.config) if await _send_blob(registry, archive, blob, target)]
    await registry.put_manifest(target, image.manifest, image.media_type)
    return Loaded(target.short, image.size, len(image.layers), len(set(sent) - {image.config}))


async def _send_blob(registry: Registry, archive: Archive, blob: Blob, target: ImageName) -> bool:
    """Tell whether it had to be sent."""
    if await registry.has_blob(target.repository, blob.digest):
        return False
    with archive.open(blob.file) as content:
        whole = await registry.put_blob(target.repository, Upload(blob.digest, blob.size, chunks(content)))
    if not whole:
        raise invalid(archive.source, f"the content of {blob.digest} is not what that digest promises: it is damaged")
    return True
