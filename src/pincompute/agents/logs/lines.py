"""Log lines in the format of container runtimes, which is also the store's: `TIME STREAM F|P TEXT`."""

from __future__ import annotations

import re
from typing import NamedTuple

FILE_STREAM = "file"
"""Stream name of lines from files of a log volume."""
MAX_LINE_BYTES = 32 << 10
"""A longer line is shipped as several partial lines."""
MAX_STORED_LINE_BYTES = MAX_LINE_BYTES + 128
"""The store cuts a line, with its time and stream, to this size."""

_LINE = re.compile(
    rb"(\d{4}-\d\d-\d\dT[0-9:.]{8,18}(?:Z|[+-]\d\d:\d\d)) (stdout|stderr|file) ([FP])(?::\w+)? ?([^\n]*)\n?"
)


class LogLine(NamedTuple):
    time: str
    stream: str
    complete: bool
    """Whether the line ends here; if not, the next one continues it."""
    text: str


def parse_line(line: bytes) -> LogLine | None:
    """The parsed line, or None if it has another format."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    time, stream, tag, text = found.groups()
    return LogLine(time.decode(), stream.decode(), tag == b"F", text.decode("utf-8", "replace"))


def format_file_lines(text: bytes, time: str) -> bytes:
    """Converts text of a log volume file to log lines with the same time. The last line break may be missing."""
    head = f"{time} {FILE_STREAM} ".encode()
    return b"".join(head + piece for line in text.removesuffix(b"\n").split(b"\n") for piece in _partial_lines(line))


def _partial_lines(line: bytes) -> list[bytes]:
    parts = [line[start : start + MAX_LINE_BYTES] for start in range(0, len(line), MAX_LINE_BYTES)] or [b""]
    return [*(b"P " + part + b"\n" for part in parts[:-1]), b"F " + parts[-1] + b"\n"]
