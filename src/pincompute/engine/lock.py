"""One at a time: a lock that a dying process lets go of by itself, and that says who holds it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path


@contextmanager
def held(file: Path, doing: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock; where another holds it, say whom it waits for, and go on when that one is done."""
    handle = _take(file, say)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{doing}, pid {os.getpid()}".encode(), 0)
        yield
    finally:
        os.ftruncate(handle, 0)
        os.close(handle)


def _take(file: Path, say: Callable[[str], None]) -> int:
    while True:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command to end ({_holder(handle)})")
            flock(handle, LOCK_EX)
        # The one before may have removed the file together with the platform: then this lock guards nothing.
        if _same(handle, file):
            return handle
        os.close(handle)


def _holder(handle: int) -> str:
    return os.pread(handle, 200, 0).decode(errors="replace") or "it has just begun"


def _same(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
