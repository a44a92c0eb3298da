"""Reads stored lines of a stream, and joins lines that the container runtime has split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pincompute.agents.logs import lines
from pincompute.agents.logs.accepted_lines import is_time
from pincompute.agents.logs.stream_file import StreamFile
from pincompute.api.logs import LogEntry

MAX_ENTRY_CHARS = 256 << 10
"""Longest line after joining its parts; a longer one is returned as several."""


def last_lines(stream_file: StreamFile, tail: int, max_bytes: int) -> list[bytes]:
    """Stored lines that contain the last `tail` lines, oldest first; fewer if they have more bytes."""
    found: list[bytes] = []
    complete = size = 0
    for line in stream_file.lines_backwards():
        parsed = lines.parse_line(line)
        if parsed is None or not is_time(parsed.time):
            continue
        complete += parsed.complete
        size += len(line)
        # The parts of the first line come before its end: they are read until the end of the line before.
        if complete > tail or size > max_bytes:
            break
        found.append(line)
    return found[::-1]


def parse_entries(stored: Iterable[bytes]) -> list[LogEntry]:
    return [*join_partial_lines(each for each in map(lines.parse_line, stored) if each)]


def join_partial_lines(partial_lines: Iterator[lines.LogLine]) -> Iterator[LogEntry]:
    """Joins partial lines. Parts of one line are consecutive within their stream, stdout or stderr."""
    unfinished: dict[str, list[str]] = {}
    time = ""
    for line in partial_lines:
        time = line.time
        parts = unfinished.setdefault(line.stream, [])
        parts.append(line.text)
        if line.complete or sum(map(len, parts)) >= MAX_ENTRY_CHARS:
            yield LogEntry(time, "".join(unfinished.pop(line.stream)))
    for parts in unfinished.values():
        yield LogEntry(time, "".join(parts))
