"""An image that says in its own environment which one it is: of one archive, as many as there are names."""

from __future__ import annotations

import hashlib
import io
from typing import IO, Any

import msgspec

from pincompute.engine.images.archive import Archive

VARIABLE = "PINCOMPUTE_IMAGE"
_INDEX = "index.json"


class Named:
    """An OCI layout as it is, but for that one variable, and the digests that hang on it."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.source = archive.source
        self._archive = archive
        self._own: dict[str, bytes] = {}
        index = self._read(_INDEX)
        (entry,) = index["manifests"]
        manifest = self._read(_place(entry["digest"]))
        config = self._read(_place(manifest["config"]["digest"]))
        variables = config.setdefault("config", {}).setdefault("Env", [])
        variables.append(f"{VARIABLE}={name}")
        manifest["config"] |= self._add(config)
        entry |= self._add(manifest)
        self._own[_INDEX] = msgspec.json.encode(index)

    def names(self) -> list[str]:
        return sorted({*self._archive.names(), *self._own})

    def open(self, name: str) -> IO[bytes]:
        return io.BytesIO(self._own[name]) if name in self._own else self._archive.open(name)

    def _read(self, name: str) -> Any:
        with self._archive.open(name) as content:
            return msgspec.json.decode(content.read())

    def _add(self, value: Any) -> dict[str, str | int]:
        body = msgspec.json.encode(value)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self._own[_place(digest)] = body
        return {"digest": digest, "size": len(body)}


def _place(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
