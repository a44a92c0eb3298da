"""Credentials that the desk sends to the artifact store and to git repositories.

They are files in a folder, read for each use: a rotated credential takes effect without a restart.
"""

from __future__ import annotations

import shlex
from pathlib import Path

ARTIFACTS_TOKEN_FILE, GIT_CREDENTIALS_FILE = "artifacts-token", "git-credentials"
_GIT_HELPER = '!f() {{ test "$1" = get && git credential-store --file={file} get; }}; f'
"""Passes on `get` only. On `erase`, git would delete rejected credentials from the file, which is not the desk's."""


class OutboundCredentials:
    """The files of a folder; without a folder, no credentials."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def artifact_store_token(self) -> str:
        """Empty if there is no token."""
        try:
            return (self._folder / ARTIFACTS_TOKEN_FILE).read_text().strip() if self._folder else ""
        except FileNotFoundError:
            return ""

    def git_options(self) -> tuple[str, ...]:
        """Options that make git use this file and no other credential helper; none if there is no file."""
        file = self._folder / GIT_CREDENTIALS_FILE if self._folder else None
        if file is None or not file.exists():
            return ()
        helper = _GIT_HELPER.format(file=shlex.quote(str(file.absolute())))
        return ("-c", "credential.helper=", "-c", f"credential.helper={helper}")
