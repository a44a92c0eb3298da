"""Kubeconfig files with embedded certificates, one for each user of the API server."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from pincompute.base.secure_files import write_private_file
from pincompute.engine.platform import Platform


def write_kubeconfig(platform: Platform, user: str, file: Path | None = None) -> None:
    """Write the kubeconfig of a user; the client certificate has been issued under that name."""
    authority = platform.authority
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": platform.name,
                "cluster": {"server": platform.server, "certificate-authority-data": _encoded(authority.bundle)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _encoded(authority.certificate(user)),
                    "client-key-data": _encoded(authority.key(user)),
                },
            }
        ],
        "contexts": [{"name": platform.name, "context": {"cluster": platform.name, "user": user}}],
        "current-context": platform.name,
    }
    write_private_file(file or platform.kubeconfig_of(user), yaml.safe_dump(content, sort_keys=False).encode())


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
