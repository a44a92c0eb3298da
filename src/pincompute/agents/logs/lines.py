"""Lines as container runtimes write them, and as the store keeps them: `TIME STREAM F|P TEXT`."""

from __future__ import annotations

import re
from typing import NamedTuple

from pincompute.objects.times import instant

FILE = "file"
"""The stream of a line that was written into a log volume."""
LONGEST = 32 << 10
"""Bytes of a line in one piece; a longer one is kept in several."""

_LINE = re.compile(
    rb"(\d{4}-\d\d-\d\dT[0-9:.]{8,18}(?:Z|[+-]\d\d:\d\d)) (stdout|stderr|file) ([FP])(?::\w+)? ?([^\n]*)\n?"
)


class Line(NamedTuple):
    time: str
    stream: str
    whole: bool
    """Whether the line ends here; else the next one goes on with it."""
    text: str


def read(line: bytes) -> Line | None:
    """Nothing where it is not such a line."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    time, stream, tag, text = found.groups()
    return Line(time.decode(), stream.decode(), tag == b"F", text.decode("utf-8", "replace"))


def wrapped(text: bytes, time: str) -> bytes:
    """What stands in a file of a log volume as lines of one time; its last line break may be to come."""
    head = f"{time} {FILE} ".encode()
    return b"".join(head + piece for line in text.removesuffix(b"\n").split(b"\n") for piece in _pieces(line))


def begun(head: bytes) -> int:
    """When the first line of a file was printed: no two files of one stream begin at the same instant; 0 if unknown."""
    found = _LINE.fullmatch(head.partition(b"\n")[0])
    return instant(found[1].decode()) if found else 0


def _pieces(line: bytes) -> list[bytes]:
    parts = [line[start : start + LONGEST] for start in range(0, len(line), LONGEST)] or [b""]
    return [*(b"P " + part + b"\n" for part in parts[:-1]), b"F " + parts[-1] + b"\n"]
