"""Checks lines on their way into the store: pods choose what their sidecars send."""

from __future__ import annotations

from pincompute.agents.logs.lines import FILE_STREAM, MAX_STORED_LINE_BYTES, parse_line
from pincompute.objects.times import parse_time_ns


def accepted_lines(text: bytes, *, of_file: bool) -> bytes:
    """Those lines of a batch that belong to its stream, cut to the largest size.

    A pod writes the lines of its volume files, and they must not pass for standard output, which only its node writes.
    A line without a valid time would make its whole stream unreadable.
    """
    return b"".join(
        line + b"\n"
        for line in (each[:MAX_STORED_LINE_BYTES] for each in text.split(b"\n"))
        if (parsed := parse_line(line)) and (parsed.stream == FILE_STREAM) == of_file and is_time(parsed.time)
    )


def is_time(time: str) -> bool:
    """Whether the time of a line can be read."""
    try:
        parse_time_ns(time)
    except (ValueError, OverflowError):
        return False
    return True
