"""The images in an archive, whether `docker save` wrote it or it is an OCI layout: names, manifest and blobs."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple, TypeVar

import msgspec

from pincompute.engine.images.archive import GZIP, Archive, chunks, invalid
from pincompute.engine.images.format import (
    CONFIG,
    INDEXES,
    LAYER,
    MANIFEST,
    Configuration,
    Descriptor,
    Index,
    Manifest,
    Saved,
    Target,
)

T = TypeVar("T")

# Where an OCI layout says what an image is called: containerd's and Docker's way, then the specification's.
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Blob(NamedTuple):
    """One piece of an image, and the file of the archive that holds it."""

    digest: str
    size: int
    file: str


class Contents(NamedTuple):
    names: tuple[str, ...]
    """What the archive calls it, if anything."""
    manifest: bytes
    media_type: str
    config: Blob
    layers: tuple[Blob, ...]

    @property
    def size(self) -> int:
        return self.config.size + sum(layer.size for layer in self.layers)


def contents(archive: Archive) -> list[Contents]:
    names = archive.names()
    # New Dockers write both kinds at once; their own list knows the names better.
    if "manifest.json" in names:
        return [_saved(archive, each) for each in _json(archive, "manifest.json", list[Saved])]
    if "index.json" in names:
        return list(_laid_out(archive))
    found = ", ".join(names[:5]) or "nothing"
    raise invalid(archive.source, "not an image: there is neither manifest.json nor index.json", f"there is: {found}")


def _laid_out(archive: Archive) -> Iterator[Contents]:
    for entry in _json(archive, "index.json", Index).manifests:
        names = tuple(entry.annotations[key] for key in _NAMES if key in entry.annotations)
        chosen = _for_this_machine(archive, entry)
        body = _checked(archive, chosen)
        manifest = _decode(archive, chosen.digest, body, Manifest)
        yield Contents(
            # A reference name may be a mere tag, which names nothing.
            tuple(name for name in names[:1] if set(name) & set(":/")),
            body,
            chosen.media_type,
            _blob(archive, manifest.config),
            tuple(_blob(archive, layer) for layer in manifest.layers),
        )


def _for_this_machine(archive: Archive, entry: Descriptor) -> Descriptor:
    """Of an image for several machines, the one for ours."""
    if entry.media_type not in INDEXES:
        return entry
    here = Target("linux", _ARCHITECTURES.get(platform.machine(), platform.machine()))
    choices = _decode(archive, entry.digest, _checked(archive, entry), Index).manifests
    for choice in choices:
        if choice.platform == here:
            return choice
    offered = ", ".join(f"{choice.platform.os}/{choice.platform.architecture}" for choice in choices)
    raise invalid(
        archive.source, f"the image is not for this machine, {here.os}/{here.architecture}", f"it is for: {offered}"
    )


def _saved(archive: Archive, saved: Saved) -> Contents:
    """Docker's own format has no manifest, so one is written; layers stay as they are."""
    body = _read(archive, saved.config)
    ids = _decode(archive, saved.config, body, Configuration).rootfs.diff_ids
    if len(ids) != len(saved.layers):
        raise invalid(archive.source, f"{saved.config} speaks of {len(ids)} layers, and there are {len(saved.layers)}")
    config = Descriptor(CONFIG, _sha256([body]), len(body))
    layers = [_layer(archive, file, expected) for file, expected in zip(saved.layers, ids, strict=True)]
    return Contents(
        tuple(saved.repo_tags or ()),
        msgspec.json.encode(Manifest(config=config, layers=layers)),
        MANIFEST,
        Blob(config.digest, config.size, saved.config),
        tuple(Blob(layer.digest, layer.size, file) for layer, file in zip(layers, saved.layers, strict=True)),
    )


def _layer(archive: Archive, file: str, diff_id: str) -> Descriptor:
    """A layer that is not packed has the digest that its image names; the registry will check it."""
    with _open(archive, file) as content:
        packed = content.read(2) == GZIP
        content.seek(0)
        digest = _sha256(chunks(content)) if packed else diff_id
        size = content.seek(0, 2)
    return Descriptor(f"{LAYER}+gzip" if packed else LAYER, digest, size)


def _blob(archive: Archive, descriptor: Descriptor) -> Blob:
    file = _place(archive, descriptor.digest)
    with _open(archive, file) as content:
        size = content.seek(0, 2)
    if size != descriptor.size:
        raise invalid(
            archive.source, f"{descriptor.digest} should have {descriptor.size} bytes and has {size}: it is damaged"
        )
    return Blob(descriptor.digest, size, file)


def _checked(archive: Archive, descriptor: Descriptor) -> bytes:
    body = _read(archive, _place(archive, descriptor.digest))
    if _sha256([body]) != descriptor.digest:
        raise invalid(archive.source, f"the content of {descriptor.digest} is not what that digest promises")
    return body


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def _place(archive: Archive, digest: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise invalid(archive.source, f"'{digest}' is not a sha256 digest")
    return f"blobs/{digest.replace(':', '/')}"


def _json(archive: Archive, name: str, type_: type[T]) -> T:
    return _decode(archive, name, _read(archive, name), type_)


def _decode(archive: Archive, name: str, body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(archive.source, f"{name} is not what it should be: {error}") from error


def _read(archive: Archive, name: str) -> bytes:
    with _open(archive, name) as content:
        return content.read()


def _open(archive: Archive, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except KeyError as error:
        raise invalid(archive.source, f"the image lacks {name}, which it speaks of") from error
