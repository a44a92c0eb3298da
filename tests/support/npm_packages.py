"""Packages of npm that tests need, installed by their lock into a cache folder."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pincompute.base.settings import setting_value

LOCK = ("package.json", "package-lock.json")


def install_locked(source: Path, label: str, files: Sequence[str] = LOCK) -> Path:
    """Install the packages of a folder's lock once; return the folder with them and the copied files."""
    digest = hashlib.sha256(b"".join((source / each).read_bytes() for each in files)).hexdigest()
    folder = Path(setting_value("cache")) / "tests" / f"{label}-{digest[:16]}"
    if folder.exists():
        return folder
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for each in files:
        shutil.copy(source / each, fresh)
    command = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    subprocess.run(command, cwd=fresh, check=True)
    fresh.rename(folder)
    return folder
