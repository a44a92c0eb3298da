"""Token of the metrics and the pass history of a platform, in the forms that Prometheus and curl read."""

from __future__ import annotations

import secrets
from pathlib import Path

from pincompute.base.secure_files import write_private_file
from pincompute.engine.home import Home


def token_file(home: Home) -> Path:
    """The token alone: `--token-file` of our processes, `credentials_file` of Prometheus."""
    return home.root / "metrics.token"


def header_file(home: Home) -> Path:
    """The header of a request: `curl -H @FILE`, which keeps the token out of the command line."""
    return home.root / "metrics.header"


def write_token_files(home: Home) -> None:
    """Write both files; an existing token is kept, as scrapers may have been configured with it."""
    token = token_file(home)
    if not token.exists():
        write_private_file(token, secrets.token_urlsafe(32).encode())
    write_private_file(header_file(home), b"Authorization: Bearer " + token.read_bytes().strip() + b"\n")
