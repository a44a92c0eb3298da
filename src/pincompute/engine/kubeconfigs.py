"""Kubeconfigs: the way in for each user, whole in one file that may be copied elsewhere."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from pincompute.base.certificates import write_private
from pincompute.engine.platform import Platform


def write_kubeconfig(platform: Platform, user: str, file: Path | None = None) -> None:
    """For the user whom the certificate of that name speaks for."""
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
    write_private(file or platform.config(user), yaml.safe_dump(content, sort_keys=False).encode())


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
