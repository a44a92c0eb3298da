"""What workloads print, as it goes over the wire: lines, what happened between them, and the lives of containers."""

from __future__ import annotations

from typing import Literal

from pincompute.api.wire import Wire

LINES = 100
"""Of each copy, unless a person says otherwise."""
HEARTBEAT = 10.0
"""Seconds after which a store that is listened to says that it is there."""


class Copies(Wire, frozen=True, omit_defaults=True, tag="copies", tag_field="is"):
    """Whose lines follow: said first, and again when another joins."""

    copies: list[str]


class Line(Wire, frozen=True, omit_defaults=True, tag="line", tag_field="is"):
    """One line that a copy printed."""

    copy: str
    """A few letters or a number: abcde of hello-5d8f7c9b7-abcde, 12 of resize/12."""
    time: str
    text: str
    container: str = ""
    """Where it is not the workload's own program."""


class Mark(Wire, frozen=True, omit_defaults=True, tag="mark", tag_field="is"):
    """What happened to a copy, between its lines; of no copy where it is about all of them."""

    copy: str
    time: str
    text: str


Said = Copies | Line | Mark


Only = Literal["", "ended", "youngest"]


class Wanted(Wire, frozen=True, kw_only=True):
    """Which lines are asked for."""

    copy: str = ""
    """Of one copy or task; of all where empty."""
    container: str = ""
    """Of another container than the workload's own program, or of a file of its log volume."""
    gone: bool = False
    """Of copies whose pods are gone as well, while others are there."""
    previous: bool = False
    """Of the life before the present one only."""
    since: int = 0
    """Nanoseconds since 1970; from the beginning where 0."""
    tail: int = LINES
    follow: bool = False
    only: Only = ""
    """Of one container of one copy alone: of that which ended badly last, or of the youngest."""


class End(Wire, frozen=True):
    """How one life of a container ended."""

    reason: str = ""
    """As Kubernetes says it, such as OOMKilled."""
    exit_code: int = 0
    at: str = ""


class Life(Wire, frozen=True, kw_only=True):
    """One life of a container, or one file of its pod's log volume, as the store keeps it."""

    pod: str
    uid: str
    container: str
    restart: int = 0
    labels: dict[str, str] = {}
    """Of its pod, as far as they say which copy it was."""
    main: str = ""
    """The first container of its pod."""
    created: str = ""
    gone: str = ""
    """When its pod was removed; empty while it is there."""
    end: End | None = None

    @property
    def of_a_file(self) -> bool:
        """Files of a log volume have a dot in their names, and no container has."""
        return "." in self.container


class Entry(Wire, frozen=True):
    """One line as the store answers it."""

    time: str
    text: str


class Fresh(Wire, frozen=True):
    """Lines that the store has taken at this moment."""

    life: Life
    entries: list[Entry]
