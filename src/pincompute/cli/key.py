"""The key that a person or a builder signs with: the one they have for git and ssh."""

from __future__ import annotations

from pathlib import Path

from pincompute.api.attestation import KEYS, Key, NotSaid, private
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import USAGE

USUAL = "~/.ssh/id_ed25519"


def read_key(said: str) -> Key:
    file = Path(said or USUAL).expanduser()
    where = Where(str(file))
    try:
        return private(file.read_bytes())
    except OSError as error:
        what = f"the key cannot be read: {error.strerror}"
        raise Refused(Problem(USAGE, what, where, next=f"ssh-keygen -t ed25519 -f {file}")) from error
    except NotSaid as error:
        what = f"this is no key to sign with: {error}"
        raise Refused(Problem(USAGE, what, where, note=f"it must be {KEYS}, without a password")) from error
