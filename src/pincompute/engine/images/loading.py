"""Uploads images from archives to a platform's registry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import IMAGE_NAME_INVALID
from pincompute.engine.images.archive import Archive, invalid_image, open_archive, read_chunks
from pincompute.engine.images.contents import Blob, ImageContents, read_images
from pincompute.kube.image_registry import BlobUpload, ImageRegistry
from pincompute.objects.image import ImageName, parse_image


class LoadedImage(NamedTuple):
    """Result of uploading one image."""

    name: str
    size: int
    layers: int
    new_layers: int
    digest: str
    """Of the manifest."""

    def text(self) -> str:
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"{self.name}  {self.size / 1e6:.1f} MB  {layers}, {self.new_layers} new"


async def load_images(registry: ImageRegistry, source: Path, names: Sequence[str] = ()) -> list[LoadedImage]:
    """Upload every image of an archive or layout. Given names replace those in the archive."""
    with open_archive(source) as archive:
        return await send_images(registry, archive, names)


async def send_images(registry: ImageRegistry, archive: Archive, names: Sequence[str]) -> list[LoadedImage]:
    images = list(read_images(archive))
    if names and len(images) > 1:
        raise invalid_image(archive.source, f"a name was given, but the archive has {len(images)} images")
    wanted = [(image, target) for image in images for target in _target_names(archive, image, names)]
    return [await _upload_image(registry, archive, image, target) for image, target in wanted]


def _target_names(archive: Archive, image: ImageContents, names: Sequence[str]) -> list[ImageName]:
    """Names under which an image is uploaded."""
    names = names or image.names
    if not names:
        raise Refused(
            Problem(
                IMAGE_NAME_INVALID,
                "the archive has no name for the image",
                Where(file=str(archive.source)),
                next=f"pin image load {archive.source} --as NAME:TAG",
            )
        )
    return [checked_image_name(each, archive.source) for each in names]


def checked_image_name(text: str, source: Path) -> ImageName:
    """Parse an image name; the error refers to the source."""
    where = Where(file=str(source))
    try:
        name = parse_image(text)
    except ValueError as error:
        what = f"'{text}' is not a valid image name"
        raise Refused(Problem(IMAGE_NAME_INVALID, what, where, note=str(error))) from error
    if name.digest:
        raise Refused(
            Problem(IMAGE_NAME_INVALID, f"'{text}': must be a name and tag; a digest cannot be chosen", where)
        )
    return name


async def _upload_image(
    registry: ImageRegistry, archive: Archive, image: ImageContents, target: ImageName
) -> LoadedImage:
    """Upload the blobs that the registry lacks, then the manifest, so that a partial image is never visible."""
    sent = [blob for blob in (*image.layers, image.config) if await _upload_blob(registry, archive, blob, target)]
    await registry.put_manifest(target, image.manifest, image.media_type)
    new_layers = len(set(sent) - {image.config})
    return LoadedImage(target.short, image.size, len(image.layers), new_layers, image.digest)


async def _upload_blob(registry: ImageRegistry, archive: Archive, blob: Blob, target: ImageName) -> bool:
    """Upload a blob; returns False if the registry already had it."""
    if await registry.has_blob(target.repository, blob.digest):
        return False
    with archive.open(blob.file) as content:
        accepted = await registry.put_blob(target.repository, BlobUpload(blob.digest, blob.size, read_chunks(content)))
    if not accepted:
        raise invalid_image(archive.source, f"damaged: the content of {blob.digest} has another digest")
    return True
