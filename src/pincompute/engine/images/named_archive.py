"""Adds the image name to the environment of an image, so that one archive serves several names."""

from __future__ import annotations

import io
from typing import IO, Any

import msgspec

from pincompute.engine.images.archive import Archive
from pincompute.engine.images.format import blob_path, sha256_digest

IMAGE_VARIABLE = "PINCOMPUTE_IMAGE"
_INDEX = "index.json"


class NamedArchive:
    """View of an OCI layout with one more variable in its configuration, and the digests that change with it."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.source = archive.source
        self._archive = archive
        self._replaced: dict[str, bytes] = {}
        index = self._read(_INDEX)
        (entry,) = index["manifests"]
        manifest = self._read(blob_path(entry["digest"]))
        config = self._read(blob_path(manifest["config"]["digest"]))
        variables = config.setdefault("config", {}).setdefault("Env", [])
        variables.append(f"{IMAGE_VARIABLE}={name}")
        manifest["config"] |= self._add(config)
        entry |= self._add(manifest)
        self._replaced[_INDEX] = msgspec.json.encode(index)

    def names(self) -> list[str]:
        return sorted({*self._archive.names(), *self._replaced})

    def open(self, name: str) -> IO[bytes]:
        return io.BytesIO(self._replaced[name]) if name in self._replaced else self._archive.open(name)

    def _read(self, name: str) -> Any:
        with self._archive.open(name) as content:
            return msgspec.json.decode(content.read())

    def _add(self, value: Any) -> dict[str, str | int]:
        body = msgspec.json.encode(value)
        digest = sha256_digest([body])
        self._replaced[blob_path(digest)] = body
        return {"digest": digest, "size": len(body)}
