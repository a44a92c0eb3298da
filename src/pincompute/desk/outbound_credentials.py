"""Credentials that the desk sends to the artifact store, to git repositories and to the OpenID provider, and what it
trusts there.

They are files in a folder, read for each use: a rotated credential takes effect without a restart.
"""

from __future__ import annotations

import shlex
from pathlib import Path

ARTIFACTS_TOKEN_FILE, GIT_CREDENTIALS_FILE, GIT_AUTHORITY_FILE = "artifacts-token", "git-credentials", "git-ca.crt"
OPENID_SECRET_FILE = "openid-client-secret"  # noqa: S105  (a name of a file)
_GIT_HELPER = '!f() {{ test "$1" = get && git credential-store --file={file} get; }}; f'
"""Passes on `get` only. On `erase`, git would delete rejected credentials from the file, which is not the desk's."""


class OutboundCredentials:
    """The files of a folder; without a folder, no credentials."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def artifact_store_token(self) -> str:
        """Empty if there is no token."""
        return self._read(ARTIFACTS_TOKEN_FILE)

    def openid_client_secret(self) -> str:
        """Empty for a public client."""
        return self._read(OPENID_SECRET_FILE)

    def git_options(self) -> tuple[str, ...]:
        """Options that make git use these files, and no other credential helper; none if there are no files."""
        options: list[str] = []
        if file := self._existing(GIT_CREDENTIALS_FILE):
            helper = _GIT_HELPER.format(file=shlex.quote(str(file)))
            options += ["-c", "credential.helper=", "-c", f"credential.helper={helper}"]
        if file := self._existing(GIT_AUTHORITY_FILE):
            options += ["-c", f"http.sslCAInfo={file}"]
        return tuple(options)

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text().strip() if self._folder else ""
        except FileNotFoundError:
            return ""

    def _existing(self, name: str) -> Path | None:
        file = (self._folder / name).absolute() if self._folder else None
        return file if file and file.exists() else None
