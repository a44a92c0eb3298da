"""The file of keys that wrap the data keys of secrets: `agents/secrets/key_provider.py` reads it."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from pincompute.base.secure_files import write_private_file

KEY_BYTES = 32


def create_key_file(file: Path) -> None:
    """Create the file with one key. An existing file stays: without its keys every secret would be lost."""
    if not file.exists():
        write_private_file(file, msgspec.json.encode({"1": secrets.token_bytes(KEY_BYTES)}))
