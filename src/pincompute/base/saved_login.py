"""The saved login of a user: tokens of the desk's OpenID provider, in a private file beside the platform's context."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pincompute.base.secure_files import PRIVATE_FILE_MODE, make_private_folder, write_private_file


class SavedLogin(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    client: str
    token: str
    """Sent to the desk."""
    refresh: str = ""
    """Refresh token; empty if the provider issues none."""
    expires_at: float = msgspec.field(name="until", default=0.0)
    """Expiry of the token, in seconds since 1970."""


def _file(state: Path, name: str) -> Path:
    return state / name / "login.json"


def read_login(state: Path, name: str) -> SavedLogin | None:
    try:
        return msgspec.json.decode(_file(state, name).read_bytes(), type=SavedLogin)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_login(state: Path, name: str, login: SavedLogin) -> None:
    write_private_file(_file(state, name), msgspec.json.encode(login))


def forget_login(state: Path, name: str) -> None:
    _file(state, name).unlink(missing_ok=True)


@contextmanager
def login_lock(state: Path, name: str) -> Iterator[None]:
    """Serializes refreshes over processes: a refresh token can be used only once."""
    lock = _file(state, name).with_suffix(".lock")
    make_private_folder(lock.parent)
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, PRIVATE_FILE_MODE)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
