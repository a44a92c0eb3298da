"""Follows one stream through the files that it is written into, however they are turned over. It writes none."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from pincompute.agents.logs.place import Batch, Position, Stream

MOST = 128 << 10
"""Bytes that are read and sent at once, and so all that is ever held of a stream."""
_HEAD = 64

Files = Callable[[], list[Path]]
"""All that there are of a stream at this moment, in the order in which they were written."""
Shape = Callable[[bytes], bytes]
"""From what stands in the files to lines of the store."""


def names(folder: Path | str) -> list[str]:
    """Of all that is in it; nothing where it is not there."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (asked twice a second of every container: names are enough)
    except FileNotFoundError:
        return []


class Follower:
    """Where it is, is known by the store: `begin` tells it to one that was just started, or has fallen out of step."""

    def __init__(self, stream: Stream, files: Files, shape: Shape, *, inodes: bool) -> None:
        self.stream = stream
        self._files = files
        self._shape = shape
        self._inodes = inodes
        """Whether a file keeps its inode when it is turned over; else it is packed, and its first bytes are unique."""
        self._file: BinaryIO | None = None
        self._inode = 0
        self._position = Position()

    @property
    def begun(self) -> bool:
        return self._file is not None

    def begin(self, known: Position) -> None:
        """Go on behind what the store has; where that file is gone, all that there are were written after it."""
        self.close()
        for path in self._files():
            if self._open(path, known) and self._is(known.mark):
                return
        for path in self._files():
            if self._open(path, Position(known.segment + bool(known.mark))):
                return

    def next(self, *, last: bool = False) -> Batch | None:
        """What was written since: whole lines, and the last words of what has ended; nothing where nothing was."""
        if self._file is None:
            return None
        lines = self._read(last=last)
        if not lines and self._turned_over():
            # It was held open all the time, so that nothing which came in until the last moment is lost.
            lines = self._read(last=True)
            if not lines and self._open_next():
                lines = self._read(last=last)
        if not lines:
            return None
        offset = self._position.offset + len(lines)
        end = Position(self._position.segment, offset, self._mark(offset))
        return Batch(self.stream, self._position, end, self._shape(lines))

    def stored(self, end: Position) -> None:
        """What was sent is in the store."""
        self._position = end

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, *, last: bool) -> bytes:
        found = self._at(self._position.offset, MOST)
        whole = found.rfind(b"\n") + 1
        # A line that is longer than all that is held goes in pieces.
        return found if last or (not whole and len(found) == MOST) else found[:whole]

    def _turned_over(self) -> bool:
        """Whether the newest file is another one by now, or was emptied."""
        files = self._files()
        try:
            newest = files[-1].stat() if files else None
        except FileNotFoundError:
            return False
        if newest is None:
            return False
        return newest.st_ino != self._inode or newest.st_size < self._position.offset

    def _open_next(self) -> bool:
        """The file after this one; where this one is gone, the first that there is."""
        mark, inode = self._mark(self._position.offset), self._inode
        begins = Position(self._position.segment + 1)
        files = self._files()
        emptied = files[-1].stat().st_ino == inode
        for index, path in enumerate(files):
            if not emptied and self._open(path, begins) and self._is(mark):
                files = files[index + 1 :]
                break
        return any(self._open(path, begins) for path in (files[-1:] if emptied else files))

    def _open(self, path: Path, position: Position) -> bool:
        try:
            # It is open for as long as it is followed.
            opened = gzip.open(path) if path.suffix == ".gz" else path.open("rb", buffering=0)  # noqa: SIM115
            inode = path.stat().st_ino
        except FileNotFoundError:
            return False
        self.close()
        self._file, self._inode, self._position = cast("BinaryIO", opened), inode, position
        return True

    def _mark(self, offset: int) -> str:
        """By this the file that is open is known again: its first bytes, as far as they were read."""
        count = min(offset, _HEAD)
        return f"{self._inode if self._inodes else 0}:{count}:{zlib.crc32(self._at(0, count)):x}"

    def _is(self, mark: str) -> bool:
        if not mark:
            return False
        return self._mark(int(mark.split(":")[1])) == mark

    def _at(self, offset: int, count: int) -> bytes:
        assert self._file is not None
        self._file.seek(offset)
        return self._file.read(count)
