"""Writes the base images of a build from the platform's registry into OCI layouts, which the sandbox reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import BASE_IMAGE_MISSING, IMAGE_NAME_INVALID, REGISTRY_FAILED
from pincompute.engine.images import sandbox
from pincompute.engine.images.format import (
    INDEXES,
    Descriptor,
    Index,
    Manifest,
    blob_path,
    machine_platform,
    sha256_digest,
)
from pincompute.kube.image_registry import ImageRegistry
from pincompute.objects.image import ImageName, nearest_image, parse_image

_LAYOUT = b'{"imageLayoutVersion": "1.0.0"}'


class _MediaType(msgspec.Struct, rename="camel"):
    media_type: str = ""


async def write_bases(registry: ImageRegistry, folder: Path, images: Mapping[str, int], file: str) -> dict[str, str]:
    """Write the images, given with the lines that name them. Returns where the sandbox finds each."""
    manifests = await _read_manifests(registry, images, file)
    found = {}
    for number, (text, (name, body)) in enumerate(manifests.items()):
        await _write_layout(registry, folder / str(number), name, body)
        found[text] = f"oci:{sandbox.BASES}/{number}"
    return found


async def _read_manifests(
    registry: ImageRegistry, images: Mapping[str, int], file: str
) -> dict[str, tuple[ImageName, bytes]]:
    found: dict[str, tuple[ImageName, bytes]] = {}
    problems: list[Problem] = []
    for text, line in images.items():
        where = Where(file=file, line=line)
        try:
            name = parse_image(text)
        except ValueError as error:
            problems.append(Problem(IMAGE_NAME_INVALID, f"'{text}' is not a valid image name", where, note=str(error)))
            continue
        if body := await registry.read_manifest(name):
            found[text] = (name, body)
        else:
            problems.append(await _absent(registry, text, where))
    if problems:
        raise Refused(*problems)
    return found


async def _absent(registry: ImageRegistry, text: str, where: Where) -> Problem:
    similar = nearest_image(text, await registry.list_images())
    return Problem(
        BASE_IMAGE_MISSING,
        f"image {text} is not in the registry of the platform",
        where,
        note=f"did you mean {similar}?" if similar else "",
        next=f"docker save {text} -o FILE, then pin image load FILE",
    )


async def _write_layout(registry: ImageRegistry, folder: Path, name: ImageName, body: bytes) -> None:
    try:
        media_type = msgspec.json.decode(body, type=_MediaType).media_type
        if media_type in INDEXES:
            body = await _choose(registry, name, body)
            media_type = msgspec.json.decode(body, type=_MediaType).media_type
        manifest = msgspec.json.decode(body, type=Manifest)
        files = [(blob, folder / blob_path(blob.digest)) for blob in (manifest.config, *manifest.layers)]
    except (msgspec.DecodeError, ValueError) as error:
        raise _unusable(name, str(error)) from error
    size = sum(blob.size for blob, _ in files)
    if size > sandbox.disk_bytes(folder.parent):
        raise _unusable(name, f"{size} bytes; the sandbox of a build has {sandbox.disk_bytes(folder.parent)}")
    descriptor = Descriptor(media_type or manifest.media_type, sha256_digest([body]), len(body))
    (folder / blob_path(descriptor.digest)).parent.mkdir(parents=True)
    (folder / blob_path(descriptor.digest)).write_bytes(body)
    (folder / "oci-layout").write_bytes(_LAYOUT)
    (folder / "index.json").write_bytes(b'{"schemaVersion":2,"manifests":' + msgspec.json.encode([descriptor]) + b"}")
    for blob, file in files:
        with file.open("wb") as written:
            async for chunk in registry.read_blob(name.repository, blob.digest):
                if written.tell() + len(chunk) > blob.size:
                    raise _unusable(name, f"{blob.digest} is larger than the {blob.size} bytes of its manifest")
                written.write(chunk)


async def _choose(registry: ImageRegistry, name: ImageName, body: bytes) -> bytes:
    """Manifest for this machine of an image of several platforms."""
    here = machine_platform()
    for each in msgspec.json.decode(body, type=Index).manifests:
        if each.platform == here:
            return await registry.read_manifest(name._replace(digest=each.digest))
    raise ValueError(f"not for this machine, {here.os}/{here.architecture}")


def _unusable(name: ImageName, what: str) -> Refused:
    return Refused(Problem(REGISTRY_FAILED, f"image {name.short} cannot be a base: {what}"))
