"""One stream as the store keeps it: a file of lines, in which behind each batch stands how far its stream has come.

Lines and position are written at once, so they can never disagree: what a crash tears off is found and cut, and the
shipper is asked for it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pincompute.agents.logs import lines
from pincompute.agents.logs.place import Batch, Position, committed, fits, position_of

LARGEST = 8 << 20
"""Bytes of a file, before it is turned over; one that was is kept beside it."""
_BLOCK = 64 << 10


class Kept:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: Position | None = None

    @property
    def former(self) -> Path:
        """What was turned over last."""
        return self.path.with_name(f"{self.path.name}.1")

    @property
    def position(self) -> Position:
        if self._known is None:
            self._known = self._recover()
        return self._known

    def take(self, batch: Batch, largest: int = LARGEST) -> bool:
        """Store it, once; tell whether it began where this is."""
        if not fits(self.position, batch):
            return False
        good = b"".join(line + b"\n" for line in batch.lines.split(b"\n") if lines.read(line))
        self._turn_over(largest)
        before = _size(self.path)
        try:
            with self.path.open("ab") as file:
                file.write(good + committed(batch.end))
        except OSError:
            # Of a full disk it has taken a piece, which would count as stored once anything else stands behind it.
            with suppress(FileNotFoundError):
                os.truncate(self.path, before)
            raise
        self._known = batch.end
        return True

    def last(self, count: int | None = None) -> list[bytes]:
        """The last lines, oldest first; all that are there where no number is said."""
        found: list[bytes] = []
        complete = False
        for path in (self.path, self.former):
            for line in backwards(path):
                if count is not None and len(found) >= count:
                    return found[::-1]
                if line.startswith(b"#"):
                    complete = True
                elif complete:
                    # What has no position behind it is not stored yet.
                    found.append(line)
        return found[::-1]

    def size(self) -> int:
        return sum(_size(path) for path in (self.path, self.former))

    def shorten(self, count: int) -> None:
        """To its last lines; where it is, it still knows."""
        kept, position = self.last(count), self.position
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.write_bytes(b"".join(line + b"\n" for line in kept) + committed(position))
        fresh.replace(self.path)
        self.former.unlink(missing_ok=True)

    def _turn_over(self, largest: int) -> None:
        if _size(self.path) < largest:
            return
        self.path.replace(self.former)
        self.path.write_bytes(committed(self.position))

    def _recover(self) -> Position:
        """The last position that was written; what stands behind it was torn off, and is cut."""
        for path in (self.path, self.former):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            end = content.rfind(b"\n") + 1
            while end:
                begin = content.rfind(b"\n", 0, end - 1) + 1
                known = position_of(content[begin:end])
                if known is not None:
                    os.truncate(path, end)
                    return known
                end = begin
            os.truncate(path, 0)
        return Position()


def backwards(path: Path) -> Iterator[bytes]:
    """Lines without their line breaks, the last first; read in blocks, so that the end of a long file is near."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        end, rest = file.seek(0, os.SEEK_END), b""
        while end:
            begin = max(0, end - _BLOCK)
            file.seek(begin)
            head, *whole = (file.read(end - begin) + rest).split(b"\n")
            yield from (line for line in reversed(whole) if line)
            end, rest = begin, head
        if rest:
            yield rest


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
