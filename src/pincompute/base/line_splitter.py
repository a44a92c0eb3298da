"""Splits a stream of chunks into lines."""

from __future__ import annotations


class LineSplitter:
    """Takes chunks that end anywhere and returns complete lines of any length."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *others = chunk.split(b"\n")
        self._partial.append(first)
        if not others:
            return []
        lines = [b"".join(self._partial), *others[:-1]]
        self._partial = [others[-1]]
        return lines

    def flush(self) -> bytes:
        """Returns the text after the last line break, and clears it."""
        rest = b"".join(self._partial)
        self._partial.clear()
        return rest
