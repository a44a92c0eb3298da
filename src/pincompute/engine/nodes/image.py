"""Images of one static program each: they come from our own build, and no registry has them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from platform import machine

PAUSE = "pincompute.local/pause:1"
"""Holds a pod's namespaces open."""

_NOBODY = "65535:65535"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def archive(name: str, program: Path) -> bytes:
    """As `docker save` would write an image whose only file is this static program."""
    layer = _tar({program.name: program.read_bytes()}, mode=0o755)
    config = {
        "architecture": _ARCHITECTURES.get(machine(), machine()),
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": _NOBODY},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    return _tar(
        {
            "config.json": json.dumps(config).encode(),
            "layer.tar": layer,
            "manifest.json": json.dumps(manifest).encode(),
        }
    )


def _tar(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as whole:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            whole.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
