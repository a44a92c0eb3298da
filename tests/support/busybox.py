"""A small test image: Debian's static busybox with a link for each of its applets."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

from pincompute.base.settings import setting_value
from pincompute.engine import debian

IMAGE = "busybox:test"
# The image runs as root by default.
SECURITY = "{runAsUser: 1000, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
TEMPLATE = f"{{spec: {{securityContext: {SECURITY}}}}}"


def write_image(file: Path) -> None:
    """Write the image in the format of `docker save`."""
    program = _program()
    names = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = {f"bin/{name}": "/bin/busybox" for name in names if name != "busybox"}
    layer = _tar({"bin/busybox": program.read_bytes(), "tmp/about": b"a folder to write to"}, links)
    config = {
        "architecture": subprocess.run(
            ["dpkg", "--print-architecture"], check=True, capture_output=True, text=True
        ).stdout.strip(),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    contents = {"config.json": json.dumps(config).encode(), "layer.tar": layer}
    file.write_bytes(_tar({**contents, "manifest.json": json.dumps(manifest).encode()}, {}))


def _program() -> Path:
    """The unpacked static program: the machine's own busybox may need libraries that the image lacks."""
    debian.unpack_packages(["busybox-static"])
    folder = Path(setting_value("cache")) / "debian"
    return next(folder.glob("busybox-static_*/bin/busybox"))


def _tar(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()
