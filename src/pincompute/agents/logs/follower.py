"""Reads one stream from its files and follows their rotation. It writes no files."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from pincompute.agents.logs.position import Batch, Position, Stream

MAX_BATCH_BYTES = 128 << 10
"""Size of one read and one request, and thereby the memory that a stream needs."""
_FINGERPRINT_BYTES = 64

Files = Callable[[], list[Path]]
"""Lists the current files of a stream, oldest first."""
LineFormat = Callable[[bytes], bytes]
"""Converts text of the files to lines of the store."""


def list_names(folder: Path | str) -> list[str]:
    """Names in a folder; empty if the folder does not exist."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (called twice a second for every container: names are enough)
    except FileNotFoundError:
        return []


class Follower:
    """Reads a stream from a position, which the store keeps: `seek_to` sets it at the start and after errors."""

    def __init__(self, stream: Stream, files: Files, format_lines: LineFormat, *, inodes: bool) -> None:
        self.stream = stream
        self._files = files
        self._format_lines = format_lines
        self._inodes = inodes
        """Whether a rotated file keeps its inode. If not, it is compressed, and recognized by its first bytes."""
        self._file: BinaryIO | None = None
        self._held: tuple[BinaryIO, int] | None = None
        """The newest file and its inode, open from before the store's position is known."""
        self._inode = 0
        self._position = Position()

    @property
    def started(self) -> bool:
        return self._file is not None

    def hold(self) -> None:
        """Opens the newest file while the position is unknown, so that its lines outlive the deletion of the file.

        A container can end, and its files be deleted, while the store does not respond.
        """
        if self._file is not None:
            return
        with suppress(OSError, IndexError):
            newest = self._files()[-1]
            inode = newest.stat().st_ino
            if self._held is None or self._held[1] != inode:
                self._close_held()
                self._held = cast("BinaryIO", newest.open("rb", buffering=0)), inode

    def seek_to(self, known: Position) -> None:
        """Continues after the store's position. If that file is gone, all existing files are newer."""
        self._close_file()
        next_file = Position(known.segment + bool(known.mark))
        if self._seek_in_existing(known, next_file):
            self._close_held()
        elif self._held is not None:
            # All files were deleted since the follower started to hold one of them.
            self._file, self._inode, self._position = *self._held, known
            self._held = None
            if not self._matches(known.mark):
                self._position = next_file

    def _seek_in_existing(self, known: Position, next_file: Position) -> bool:
        for path in self._files():
            if self._open(path, known) and self._matches(known.mark):
                return True
        return any(self._open(path, next_file) for path in self._files())

    def next_batch(self, *, last: bool = False) -> Batch | None:
        """Lines written since the position, or None. `last` includes an incomplete line at the end."""
        if self._file is None:
            return None
        lines = self._read(last=last)
        if not lines and self._is_rotated():
            # The file stayed open, so that lines written just before its rotation are not lost.
            lines = self._read(last=True)
            if not lines and self._open_next():
                lines = self._read(last=last)
        if not lines:
            return None
        offset = self._position.offset + len(lines)
        end = Position(self._position.segment, offset, self._mark(offset))
        return Batch(self.stream, self._position, end, self._format_lines(lines))

    def commit(self, end: Position) -> None:
        """Sets the position after a batch was stored."""
        self._position = end

    def close(self) -> None:
        self._close_file()
        self._close_held()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _close_held(self) -> None:
        if self._held is not None:
            self._held[0].close()
            self._held = None

    def _read(self, *, last: bool) -> bytes:
        found = self._read_at(self._position.offset, MAX_BATCH_BYTES)
        complete = found.rfind(b"\n") + 1
        # A line longer than a batch is sent in pieces.
        return found if last or (not complete and len(found) == MAX_BATCH_BYTES) else found[:complete]

    def _is_rotated(self) -> bool:
        """Whether the newest file is another one now, or was truncated."""
        files = self._files()
        try:
            newest = files[-1].stat() if files else None
        except FileNotFoundError:
            return False
        if newest is None:
            return False
        return newest.st_ino != self._inode or newest.st_size < self._position.offset

    def _open_next(self) -> bool:
        """Opens the file after the current one; if that is gone, the oldest file."""
        mark, inode = self._mark(self._position.offset), self._inode
        start = Position(self._position.segment + 1)
        files = self._files()
        truncated = files[-1].stat().st_ino == inode
        for index, path in enumerate(files):
            if not truncated and self._open(path, start) and self._matches(mark):
                files = files[index + 1 :]
                break
        return any(self._open(path, start) for path in (files[-1:] if truncated else files))

    def _open(self, path: Path, position: Position) -> bool:
        try:
            # The file stays open while it is followed.
            opened = gzip.open(path) if path.suffix == ".gz" else path.open("rb", buffering=0)  # noqa: SIM115
            inode = path.stat().st_ino
        except FileNotFoundError:
            return False
        self._close_file()
        self._file, self._inode, self._position = cast("BinaryIO", opened), inode, position
        return True

    def _mark(self, offset: int) -> str:
        """Fingerprint by which the open file is recognized later: inode, and checksum of the first bytes read."""
        count = min(offset, _FINGERPRINT_BYTES)
        return f"{self._inode if self._inodes else 0}:{count}:{zlib.crc32(self._read_at(0, count)):x}"

    def _matches(self, mark: str) -> bool:
        if not mark:
            return False
        return self._mark(int(mark.split(":")[1])) == mark

    def _read_at(self, offset: int, count: int) -> bytes:
        assert self._file is not None
        self._file.seek(offset)
        return self._file.read(count)
