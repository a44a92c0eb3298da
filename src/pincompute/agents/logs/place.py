"""Where a shipper is in what it ships. Beside the standard library it imports nothing: it runs in every pod."""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """What one container says in one life, or what is written into one file of its pod's log volume."""

    project: str
    pod: str
    uid: str
    container: str
    """Or the file's name: that has a dot in it, and no container's has."""
    restart: int = 0


class Position(NamedTuple):
    """All before it is in the store. Of two positions in one stream the larger one is further."""

    segment: int = 0
    """How often the file was turned over before."""
    offset: int = 0
    mark: str = ""
    """By what the shipper knows the file again; the store only remembers it."""


class Batch(NamedTuple):
    """Whole lines that follow each other."""

    stream: Stream
    start: Position
    end: Position
    lines: bytes


def fits(known: Position, batch: Batch) -> bool:
    """Whether it begins just where the store is: then it is stored once, however often it is sent."""
    if batch.start.segment == known.segment:
        return batch.start.offset == known.offset
    return batch.start.segment > known.segment


def committed(position: Position) -> bytes:
    """The line that stands behind each batch in the store's file: what comes after the last one was torn off."""
    return f"# {position.segment} {position.offset} {position.mark}\n".encode()


def position_of(line: bytes) -> Position | None:
    """Read such a line; nothing where it is another."""
    words = line.decode("utf-8", "replace").rstrip("\n").split(" ", 3)
    if len(words) != 4 or words[0] != "#" or not (words[1].isdigit() and words[2].isdigit()):
        return None
    return Position(int(words[1]), int(words[2]), words[3])
