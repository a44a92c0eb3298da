"""Credentials: what the desk shows to the store of builds and to repositories. Files of a folder, read each time that
they are shown: renewed, they are taken up without anybody having to start anything."""

from __future__ import annotations

import shlex
from pathlib import Path

STORE, GIT = "artifacts-token", "git-credentials"
_ASKED = '!f() {{ test "$1" = get && git credential-store --file={file} get; }}; f'
"""Git would strike out of the file what was refused somewhere, and that is for whoever wrote it."""


class Credentials:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def of_store(self) -> str:
        """Nothing where there is none."""
        try:
            return (self._folder / STORE).read_text().strip() if self._folder else ""
        except FileNotFoundError:
            return ""

    def of_git(self) -> tuple[str, ...]:
        """What git is told beside its question: it believes this file alone, and only where there is one."""
        file = self._folder / GIT if self._folder else None
        if file is None or not file.exists():
            return ()
        helper = _ASKED.format(file=shlex.quote(str(file.absolute())))
        return ("-c", "credential.helper=", "-c", f"credential.helper={helper}")
