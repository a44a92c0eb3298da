"""Files that only their owner can read, written atomically."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_FILE_MODE = 0o600


def write_private_file(target: Path, content: bytes) -> None:
    """Replace the file. Its mode is set at creation, so that the content is never readable by others."""
    make_private_folder(target.parent)
    fresh = target.with_name(f".{target.name}.new")
    # A process that was killed during an earlier write may have left a partial file.
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE), "wb") as file:
        file.write(content)
    fresh.replace(target)


def make_private_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
