"""File of one stream in the store: lines, and after each batch a commit line with the position of the stream.

Lines and position are written together, so that they cannot disagree. After a crash an incomplete batch has no commit
line: it is truncated, and the shipper sends it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pincompute.agents.logs.accepted_lines import accepted_lines
from pincompute.agents.logs.position import Batch, Position, commit_line, continues_at, parse_commit_line

MAX_FILE_BYTES = 8 << 20
"""A larger file is rotated; one rotated file is kept."""
_MIN_ROTATED_BYTES = 1 << 10
_BLOCK_BYTES = 64 << 10


class StreamFile:
    """Appends to and reads the file of one stream."""

    __slots__ = ("_position", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position: Position | None = None

    @property
    def rotated_path(self) -> Path:
        """Path of the file that was rotated last."""
        return self.path.with_name(f"{self.path.name}.1")

    @property
    def position(self) -> Position:
        if self._position is None:
            self._position = self._recover()
        return self._position

    def append(self, batch: Batch, max_bytes: int = MAX_FILE_BYTES) -> bool:
        """Stores the batch if it starts at the current position, and returns whether it did."""
        if not continues_at(self.position, batch):
            return False
        valid = accepted_lines(batch.lines, of_file=batch.stream.is_file)
        self._rotate(max_bytes - len(valid))
        size = _file_size(self.path)
        try:
            with self.path.open("ab") as file:
                file.write(valid + commit_line(batch.end))
        except OSError:
            # On a full disk, part of the batch may be written. The commit line of the next batch would include it.
            with suppress(FileNotFoundError):
                os.truncate(self.path, size)
            raise
        self._position = batch.end
        return True

    def tail(self, count: int | None = None, max_bytes: int | None = None) -> list[bytes]:
        """The last lines, oldest first: all lines, or as many as the limits allow."""
        found: list[bytes] = []
        size = 0
        for line in self.lines_backwards():
            size += len(line) + 1
            if (count is not None and len(found) >= count) or (max_bytes is not None and size > max_bytes):
                break
            found.append(line)
        return found[::-1]

    def lines_backwards(self) -> Iterator[bytes]:
        """All stored lines, last line first."""
        committed = False
        for path in (self.path, self.rotated_path):
            for line in read_lines_backwards(path):
                if line.startswith(b"#"):
                    committed = True
                elif committed:
                    # Lines without a commit line after them do not count as stored.
                    yield line

    def size_bytes(self) -> int:
        return sum(_file_size(path) for path in (self.path, self.rotated_path))

    def shorten(self, count: int, max_bytes: int) -> None:
        """Keeps only the last lines, and the position."""
        last_lines, position = self.tail(count, max_bytes) if count else [], self.position
        self._fresh_path.write_bytes(b"".join(line + b"\n" for line in last_lines) + commit_line(position))
        self._fresh_path.replace(self.path)
        self.rotated_path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Deletes all files of the stream, with those of an interrupted shortening."""
        for path in (self.path, self.rotated_path, self._fresh_path):
            path.unlink(missing_ok=True)

    @property
    def _fresh_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def _rotate(self, max_bytes: int) -> None:
        """Rotates the file if it has more bytes; a file without lines is never rotated."""
        if _file_size(self.path) <= max(max_bytes, _MIN_ROTATED_BYTES):
            return
        self.path.replace(self.rotated_path)
        self.path.write_bytes(commit_line(self.position))

    def _recover(self) -> Position:
        """Last committed position. Truncates what follows it, which is part of an incomplete batch."""
        for path in (self.path, self.rotated_path):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            end = content.rfind(b"\n") + 1
            while end:
                begin = content.rfind(b"\n", 0, end - 1) + 1
                known = parse_commit_line(content[begin:end])
                if known is not None:
                    os.truncate(path, end)
                    return known
                end = begin
            os.truncate(path, 0)
        return Position()


def read_lines_backwards(path: Path) -> Iterator[bytes]:
    """Yields lines without line breaks, last line first. Reads blocks from the end, so that long files are cheap."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        end, rest = file.seek(0, os.SEEK_END), b""
        while end:
            begin = max(0, end - _BLOCK_BYTES)
            file.seek(begin)
            head, *whole = (file.read(end - begin) + rest).split(b"\n")
            yield from (line for line in reversed(whole) if line)
            end, rest = begin, head
        if rest:
            yield rest


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
