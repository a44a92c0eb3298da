"""Configuration files of parts."""

from __future__ import annotations

from pathlib import Path

from pincompute.base.secure_files import write_private_file


def write_if_changed(file: Path, content: str) -> None:
    """Write a file unless it has this content already: kube-proxy exits when its file is written, even if unchanged."""
    try:
        if file.read_text() == content:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    write_private_file(file, content.encode())
