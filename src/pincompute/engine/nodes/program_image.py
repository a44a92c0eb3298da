"""Images with a single static program from the engine's build; no registry has them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from platform import machine

PAUSE = "pincompute.local/pause:1"
"""Image of the pause container, which holds a pod's namespaces open."""

_UNPRIVILEGED_USER = "65535:65535"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def docker_archive(name: str, program: Path) -> bytes:
    """An image in the format of `docker save` with this program as its only file."""
    layer = _tar({program.name: program.read_bytes()}, mode=0o755)
    config = {
        "architecture": _ARCHITECTURES.get(machine(), machine()),
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": _UNPRIVILEGED_USER},
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
