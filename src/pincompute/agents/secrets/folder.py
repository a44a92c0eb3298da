"""The files of a pod's secrets, on a volume in memory. It uses only the standard library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pincompute.objects.secret_reference import parse_reference

FILE_MODE = 0o440
"""For the agent, and for the group that every container of the pod has."""
_STATE = ".state"
COMPLETE_FILE = ".complete"
"""Exists once every secret has its file. The startup probe of the part looks for it."""


class SecretFolder:
    """A file for each secret, replaced atomically, and beside them the versions that the files have."""

    def __init__(self, folder: Path, project: str, group: int) -> None:
        self._folder = folder
        self._project = project
        self._group = group
        self._state = folder / _STATE
        self._state.mkdir(mode=0o700, exist_ok=True)

    def version_of(self, name: str) -> int:
        """Version of the file; 0 without one."""
        text = _read(self._state / f"version.{self._file_name(name)}")
        return int(text) if text.isdigit() and (self._folder / self._file_name(name)).exists() else 0

    def write(self, name: str, version: int, value: bytes) -> None:
        file = self._file_name(name)
        fresh = self._state / f"{file}.new"
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(value)
            os.fchown(opened.fileno(), -1, self._group)
            os.fchmod(opened.fileno(), FILE_MODE)
        # Without a version in between, a crash here makes the next container write the file again.
        (self._state / f"version.{file}").unlink(missing_ok=True)
        fresh.replace(self._folder / file)
        (self._state / f"version.{file}").write_text(str(version))

    def is_complete(self, names: Sequence[str]) -> bool:
        return all(self.version_of(each) for each in names)

    def mark_if_complete(self, names: Sequence[str]) -> None:
        """Lets the application start once every secret has its file."""
        if self.is_complete(names):
            (self._folder / COMPLETE_FILE).touch(mode=0o400)
            (self._state / "missing-since").unlink(missing_ok=True)

    def remove_others(self, names: Sequence[str]) -> None:
        """Removes files that are no secret of the pod."""
        wanted = {self._file_name(each) for each in names}
        for file in self._folder.iterdir():
            if file.is_file() and not file.name.startswith(".") and file.name not in wanted:
                file.unlink()

    def missing_since(self, now: str) -> str:
        """When secrets were found missing first, also by an earlier container of the pod."""
        file = self._state / "missing-since"
        if not file.exists():
            file.write_text(now)
        return _read(file)

    def report(self, reason: str) -> bool:
        """Notes that this reason is reported; False if it was already."""
        file = self._state / "reported"
        if _read(file) == reason:
            return False
        file.write_text(reason)
        return True

    def _file_name(self, name: str) -> str:
        return parse_reference(name, self._project).file_name(self._project)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
