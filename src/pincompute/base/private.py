"""Files that only their owner reads: whole or not at all, and closed before the first byte is in them."""

from __future__ import annotations

import os
from pathlib import Path

MODE = 0o600


def write_private(target: Path, content: bytes) -> None:
    private_folder(target.parent)
    fresh = target.with_suffix(".new")
    # Whoever was stopped here has left a part of one.
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as file:
        file.write(content)
    fresh.replace(target)


def private_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
