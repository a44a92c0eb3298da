"""Tiny images in the formats of `docker save` and OCI."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

OCI = "application/vnd.oci.image"


def tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(text: str) -> bytes:
    return tar({"hello.txt": text.encode()})


def config(layers: list[bytes]) -> bytes:
    diff_ids = [sha256(each) for each in layers]
    return _json({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": diff_ids}})


def docker_save_files(*texts: str, names: tuple[str, ...] = ("hello:dev",), gzipped: bool = False) -> dict[str, bytes]:
    """Files as written by `docker save`, one layer for each text; some tools gzip the layers."""
    layers = [layer(text) for text in texts]
    files = {f"{number}/layer.tar": _gzip(each) if gzipped else each for number, each in enumerate(layers)}
    manifest = [{"Config": "config.json", "RepoTags": list(names), "Layers": list(files)}]
    return {"config.json": config(layers), **files, "manifest.json": _json(manifest)}


def oci_layout_files(*texts: str, name: str = "hello:dev", platforms: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Files of an OCI layout. With platforms, a nested index refers to the same image for each of them."""
    layers = [layer(text) for text in texts]
    blobs = [_gzip(each) for each in layers]
    configuration = config(layers)
    manifest = _json({
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": _descriptor(f"{OCI}.config.v1+json", configuration),
        "layers": [_descriptor(f"{OCI}.layer.v1.tar+gzip", blob) for blob in blobs],
    })  # fmt: skip
    blobs += [configuration, manifest]
    entry = _descriptor(f"{OCI}.manifest.v1+json", manifest)
    if platforms:
        choices = [{**entry, "platform": dict(zip(("os", "architecture"), each.split("/"), strict=True))}
                   for each in platforms]  # fmt: skip
        blobs.append(_json({"schemaVersion": 2, "manifests": choices}))
        entry = _descriptor(f"{OCI}.index.v1+json", blobs[-1])
    entry["annotations"] = {"org.opencontainers.image.ref.name": name} if name else {}
    index = _json({"schemaVersion": 2, "manifests": [entry]})
    files = {f"blobs/{sha256(blob).replace(':', '/')}": blob for blob in blobs}
    return {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index, **files}


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": sha256(content), "size": len(content)}


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
