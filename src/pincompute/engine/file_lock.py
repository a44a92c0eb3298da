"""Lock between commands on one machine. The kernel releases it when its process ends; the file names the holder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path


@contextmanager
def exclusive_lock(file: Path, doing: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock during the block. If another command holds it, report that and wait."""
    with _held(_acquire(file, say), doing):
        yield


@contextmanager
def try_exclusive_lock(file: Path, doing: str) -> Iterator[bool]:
    """Hold the lock during the block if no other command holds it; yields whether it is held."""
    handle = _open(file)
    if _try_lock(handle) and _is_current(handle, file):
        with _held(handle, doing):
            yield True
    else:
        os.close(handle)
        yield False


@contextmanager
def _held(handle: int, doing: str) -> Iterator[None]:
    """Name the holder in the locked file during the block, then release the lock."""
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{doing}, pid {os.getpid()}".encode(), 0)
        yield
    finally:
        os.ftruncate(handle, 0)
        os.close(handle)


def _open(file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)


def _try_lock(handle: int) -> bool:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _acquire(file: Path, say: Callable[[str], None]) -> int:
    while True:
        handle = _open(file)
        if not _try_lock(handle):
            say(f"waiting for another command to finish ({_holder(handle)})")
            flock(handle, LOCK_EX)
        # The previous holder may have purged the platform with the lock file: then this lock guards a deleted file.
        if _is_current(handle, file):
            return handle
        os.close(handle)


def _holder(handle: int) -> str:
    return os.pread(handle, 200, 0).decode(errors="replace") or "just started"


def _is_current(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
