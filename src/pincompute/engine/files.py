"""Files that parts read."""

from __future__ import annotations

from pathlib import Path

from pincompute.base.certificates import write_private


def write_changed(file: Path, content: str) -> None:
    """Leave a file that says the same already: kube-proxy, for one, ends when its own is written again."""
    try:
        if file.read_text() == content:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    write_private(file, content.encode())
