"""The certificates and keys that a part loads when it starts, found by the files that its command names."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pincompute.engine.home import Home
from pincompute.engine.parts import Part

_IDENTITY = "identity.pem"
"""Certificate and key in the folder of a part's identity. Other folders are read while a part runs, or not at all."""


def loaded_certificates_digest(part: Part, home: Home) -> str:
    """Digest of the certificates, keys and kubeconfigs that the command names, directly or in configuration files.

    It differs from that of the running process after a renewal, until the part is restarted.
    """
    digest = hashlib.sha256()
    for file in sorted(_loaded_files(part, home)):
        digest.update(f"{file}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _loaded_files(part: Part, home: Home) -> set[Path]:
    found: set[Path] = set()
    waiting = _named_files("\n".join(part.command), home)
    while waiting:
        file = waiting.pop()
        found.add(file)
        if file.is_relative_to(home.configs):
            # A configuration may name another, as that of the scheduler names its kubeconfig.
            waiting |= _named_files(file.read_text(errors="replace"), home) - found
    return {each for each in found if each.is_relative_to(home.certificates) or each.suffix == ".kubeconfig"}


def _named_files(text: str, home: Home) -> set[Path]:
    """Existing files below `certificates` and `configs` that the text names."""
    folders = "|".join(re.escape(str(each)) for each in (home.certificates, home.configs))
    found = {Path(each) for each in re.findall(rf"(?:{folders})/[\w./-]+", text)}
    found |= {each / _IDENTITY for each in found}
    return {each for each in found if each.is_file()}
