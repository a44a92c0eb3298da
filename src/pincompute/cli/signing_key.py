"""Reads the key that a reviewer or a builder signs with, by default their SSH key."""

from __future__ import annotations

from pathlib import Path

from pincompute.api.attestation import SUPPORTED_KEY_TYPES, InvalidAttestation, SigningKey, load_private_key
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import USAGE

DEFAULT_KEY_FILE = "~/.ssh/id_ed25519"


def read_signing_key(path: str) -> SigningKey:
    file = Path(path or DEFAULT_KEY_FILE).expanduser()
    where = Where(str(file))
    try:
        return load_private_key(file.read_bytes())
    except OSError as error:
        what = f"the key cannot be read: {error.strerror}"
        raise Refused(Problem(USAGE, what, where, next=f"ssh-keygen -t ed25519 -f {file}")) from error
    except InvalidAttestation as error:
        note = f"it must be {SUPPORTED_KEY_TYPES}, without a password"
        raise Refused(Problem(USAGE, f"not a signing key: {error}", where, note=note)) from error
