"""Lists the images of an archive, `docker save` or OCI layout: names, manifest and blobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NamedTuple, TypeVar

import msgspec

from pincompute.engine.images.archive import GZIP_MAGIC, Archive, invalid_image, read_chunks
from pincompute.engine.images.format import (
    CONFIG,
    INDEXES,
    LAYER,
    MANIFEST,
    Descriptor,
    DockerManifestEntry,
    ImageConfig,
    Index,
    Manifest,
    blob_path,
    machine_platform,
    sha256_digest,
)

T = TypeVar("T")

# Annotations with the name of an image: of containerd and Docker, then of the OCI specification.
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


class Blob(NamedTuple):
    """One blob of an image, and the file of the archive with its content."""

    digest: str
    size: int
    file: str


class ImageContents(NamedTuple):
    names: tuple[str, ...]
    """Names in the archive, if any."""
    manifest: bytes
    media_type: str
    config: Blob
    layers: tuple[Blob, ...]

    @property
    def size(self) -> int:
        return self.config.size + sum(layer.size for layer in self.layers)

    @property
    def digest(self) -> str:
        return sha256_digest([self.manifest])


def read_images(archive: Archive) -> list[ImageContents]:
    names = archive.names()
    # Recent versions of Docker write both formats; only manifest.json has all names.
    if "manifest.json" in names:
        return [_docker_image(archive, each) for each in _json(archive, "manifest.json", list[DockerManifestEntry])]
    if "index.json" in names:
        return list(_oci_images(archive))
    found = ", ".join(names[:5]) or "nothing"
    raise invalid_image(archive.source, "not an image: it has no manifest.json and no index.json", f"files: {found}")


def _oci_images(archive: Archive) -> Iterator[ImageContents]:
    for entry in _json(archive, "index.json", Index).manifests:
        names = tuple(entry.annotations[key] for key in _NAMES if key in entry.annotations)
        chosen = _for_this_machine(archive, entry)
        body = _read_verified(archive, chosen)
        manifest = _decode(archive, chosen.digest, body, Manifest)
        yield ImageContents(
            # A reference name may be a tag only, which is no image name.
            tuple(name for name in names[:1] if set(name) & set(":/")),
            body,
            chosen.media_type,
            _blob(archive, manifest.config),
            tuple(_blob(archive, layer) for layer in manifest.layers),
        )


def _for_this_machine(archive: Archive, entry: Descriptor) -> Descriptor:
    """The manifest for this machine's architecture of a multi-platform image."""
    if entry.media_type not in INDEXES:
        return entry
    here = machine_platform()
    choices = _decode(archive, entry.digest, _read_verified(archive, entry), Index).manifests
    for choice in choices:
        if choice.platform == here:
            return choice
    offered = ", ".join(f"{choice.platform.os}/{choice.platform.architecture}" for choice in choices)
    raise invalid_image(
        archive.source,
        f"the image does not support this machine, {here.os}/{here.architecture}",
        f"it supports: {offered}",
    )


def _docker_image(archive: Archive, saved: DockerManifestEntry) -> ImageContents:
    """Write the manifest that Docker's format lacks; layers are used unchanged."""
    body = _read(archive, saved.config)
    ids = _decode(archive, saved.config, body, ImageConfig).rootfs.diff_ids
    if len(ids) != len(saved.layers):
        raise invalid_image(
            archive.source, f"{saved.config} lists {len(ids)} layers, the archive has {len(saved.layers)}"
        )
    config = Descriptor(CONFIG, sha256_digest([body]), len(body))
    layers = [_layer(archive, file, expected) for file, expected in zip(saved.layers, ids, strict=True)]
    return ImageContents(
        tuple(saved.repo_tags or ()),
        msgspec.json.encode(Manifest(config=config, layers=layers)),
        MANIFEST,
        Blob(config.digest, config.size, saved.config),
        tuple(Blob(layer.digest, layer.size, file) for layer, file in zip(layers, saved.layers, strict=True)),
    )


def _layer(archive: Archive, file: str, diff_id: str) -> Descriptor:
    """Descriptor of a layer. The digest of an uncompressed layer is its diff id, which the registry verifies."""
    with _open(archive, file) as content:
        gzipped = content.read(2) == GZIP_MAGIC
        content.seek(0)
        digest = sha256_digest(read_chunks(content)) if gzipped else diff_id
        size = content.seek(0, 2)
    return Descriptor(f"{LAYER}+gzip" if gzipped else LAYER, digest, size)


def _blob(archive: Archive, descriptor: Descriptor) -> Blob:
    file = _blob_path(archive, descriptor.digest)
    with _open(archive, file) as content:
        size = content.seek(0, 2)
    if size != descriptor.size:
        raise invalid_image(
            archive.source, f"damaged: {descriptor.digest} has {size} bytes instead of {descriptor.size}"
        )
    return Blob(descriptor.digest, size, file)


def _read_verified(archive: Archive, descriptor: Descriptor) -> bytes:
    body = _read(archive, _blob_path(archive, descriptor.digest))
    if sha256_digest([body]) != descriptor.digest:
        raise invalid_image(archive.source, f"damaged: the content of {descriptor.digest} has another digest")
    return body


def _blob_path(archive: Archive, digest: str) -> str:
    try:
        return blob_path(digest)
    except ValueError as error:
        raise invalid_image(archive.source, str(error)) from error


def _json(archive: Archive, name: str, type_: type[T]) -> T:
    return _decode(archive, name, _read(archive, name), type_)


def _decode(archive: Archive, name: str, body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid_image(archive.source, f"{name} is not valid: {error}") from error


def _read(archive: Archive, name: str) -> bytes:
    with _open(archive, name) as content:
        return content.read()


def _open(archive: Archive, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except KeyError as error:
        raise invalid_image(archive.source, f"the image refers to {name}, which it does not contain") from error
