"""What somebody got who signed in at a desk's provider: kept beside the platform's context, for their eyes alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pincompute.base.private import MODE, private_folder, write_private


class Login(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    client: str
    token: str
    """That the desk is shown."""
    refresh: str = ""
    """By which the next one is got, without anybody having to do anything."""
    until: float = 0.0
    """When the token runs out, in seconds since 1970."""


def _file(state: Path, name: str) -> Path:
    return state / name / "login.json"


def read_login(state: Path, name: str) -> Login | None:
    try:
        return msgspec.json.decode(_file(state, name).read_bytes(), type=Login)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_login(state: Path, name: str, login: Login) -> None:
    write_private(_file(state, name), msgspec.json.encode(login))


def forget_login(state: Path, name: str) -> None:
    _file(state, name).unlink(missing_ok=True)


@contextmanager
def in_turn(state: Path, name: str) -> Iterator[None]:
    """One command after the other: a word that gets the next token is good once."""
    lock = _file(state, name).with_suffix(".lock")
    private_folder(lock.parent)
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, MODE)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
