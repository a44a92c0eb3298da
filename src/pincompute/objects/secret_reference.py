"""References to secrets, as workloads name them: `db-password`, `ads/api-key`, `db-password@3`."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_SECRET_VERSION = 999_999
_NAME = "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
SECRET_REFERENCE_PATTERN = f"^({_NAME}/)?{_NAME}(@[1-9][0-9]{{0,5}})?$"
SECRET_NAME_PATTERN = f"^{_NAME}$"
MAX_SECRET_REFERENCE_CHARS = 134
"""Two names of 63 characters, and a version of six digits."""


class SecretReference(NamedTuple):
    project: str
    name: str
    version: int = 0
    """0 follows the primary version."""

    def relative_to(self, project: str) -> str:
        """As a workload of the project writes it."""
        prefix = "" if self.project == project else f"{self.project}/"
        return f"{prefix}{self.name}{f'@{self.version}' if self.version else ''}"

    def file_name(self, project: str) -> str:
        """Name of the file in a pod of the project. Names have no dots, so that no two secrets share a file."""
        return self.name if self.project == project else f"{self.project}.{self.name}"


def parse_reference(text: str, project: str) -> SecretReference:
    """Parse a reference of a workload in this project. ValueError if it is malformed."""
    if not re.fullmatch(SECRET_REFERENCE_PATTERN, text):
        raise ValueError(f"invalid secret {text[:200]!r}")
    path, _, version = text.partition("@")
    owner, _, name = path.rpartition("/")
    return SecretReference(owner or project, name, int(version or 0))
