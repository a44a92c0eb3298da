"""Streams, positions and batches of log shipping: the rule by which every line is stored exactly once.

A batch names the position where it starts and the one where it ends. The store accepts it only if it starts where the
stored lines end, so that a repeated batch is ignored. Shippers run in every pod: only the standard library is imported.
"""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """Output of one container run, or one file of a pod's log volume."""

    project: str
    pod: str
    uid: str
    container: str
    """Container name, or name of a volume file."""
    restart: int = 0

    @property
    def is_file(self) -> bool:
        return is_volume_file(self.container)


def is_volume_file(container: str) -> bool:
    """Whether the name is that of a file of the pod's log volume. Names of containers have no dot."""
    return "." in container


class Position(NamedTuple):
    """Point of a stream before which all lines are stored. Positions of one stream are ordered."""

    segment: int = 0
    """Number of rotations of the file so far."""
    offset: int = 0
    mark: str = ""
    """Fingerprint by which the shipper recognizes the file; the store only keeps it."""


class Batch(NamedTuple):
    """Consecutive complete lines of a stream."""

    stream: Stream
    start: Position
    end: Position
    lines: bytes


def continues_at(known: Position, batch: Batch) -> bool:
    """Whether the batch starts at the stored position. A batch that is sent twice does not, the second time."""
    if batch.start.segment == known.segment:
        return batch.start.offset == known.offset
    return batch.start.segment > known.segment


def commit_line(position: Position) -> bytes:
    """Line that commits a batch in the store's file. Lines after the last commit line are an incomplete batch."""
    return f"# {position.segment} {position.offset} {position.mark}\n".encode()


def parse_commit_line(line: bytes) -> Position | None:
    """Position of a commit line, or None for another line."""
    words = line.decode("utf-8", "replace").rstrip("\n").split(" ", 3)
    if len(words) != 4 or words[0] != "#" or not (words[1].isdigit() and words[2].isdigit()):
        return None
    return Position(int(words[1]), int(words[2]), words[3])
