"""JSON documents that describe an image: of the OCI image format and of `docker save`."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable

import msgspec

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)


class ImagePlatform(msgspec.Struct, frozen=True):
    """Operating system and architecture of an image."""

    os: str = ""
    architecture: str = ""


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def machine_platform() -> ImagePlatform:
    return ImagePlatform("linux", _ARCHITECTURES.get(platform.machine(), platform.machine()))


def sha256_digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def blob_path(digest: str) -> str:
    """Path of a blob in an OCI layout. ValueError if this is no digest, which could be any path."""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"'{digest}' is not a sha256 digest")
    return f"blobs/{digest.replace(':', '/')}"


class Descriptor(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}
    platform: ImagePlatform = ImagePlatform()


class Index(msgspec.Struct, frozen=True):
    manifests: list[Descriptor]


class Manifest(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    schema_version: int = 2
    media_type: str = MANIFEST
    config: Descriptor
    layers: list[Descriptor]


class DockerManifestEntry(msgspec.Struct, rename="pascal", frozen=True):
    """One entry of the `manifest.json` of `docker save`."""

    config: str
    layers: list[str]
    repo_tags: list[str] | None = None


class RootFs(msgspec.Struct, frozen=True):
    diff_ids: list[str]


class ImageConfig(msgspec.Struct, frozen=True):
    rootfs: RootFs
