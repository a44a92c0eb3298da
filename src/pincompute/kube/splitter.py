"""Lines, of chunks that end anywhere."""

from __future__ import annotations


class Splitter:
    """Chunks in, whole lines out. Lines may be of any length."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        whole = [b"".join(self._rest), *others[:-1]]
        self._rest = [others[-1]]
        return whole

    def end(self) -> bytes:
        """What stands after the last line break."""
        rest = b"".join(self._rest)
        self._rest.clear()
        return rest
