"""What can go wrong at one write: the words for it, and which of them are worth trying where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.api.names import GROUP
from pincompute.kube.resource import CLAIMS, NAMESPACES, PODS, REPLICA_SETS

BEFORE, LOST, AFTER = "before", "lost", "after"
CRASHES = (BEFORE, LOST, AFTER)
"""The operator is killed: it was not heard; it was done, and the answer did not arrive; the answer arrived."""

UNHEARD, BROKEN, FULL, AWAY = "unheard", "broken", "full", "away"
OVERTAKEN, STOOD, BUSY, SLEPT, BELATED = "overtaken", "stood", "busy", "slept", "belated"
UNANSWERED, TIMED_OUT = "unanswered", "timed-out"
CUT, AHEAD, BACK = "cut", "ahead", "back"
TURNS = (
    (UNHEARD, BROKEN, FULL, AWAY),
    (OVERTAKEN, STOOD, BUSY, SLEPT, BELATED),
    (UNANSWERED, TIMED_OUT),
    (CUT, AHEAD, BACK),
)
"""The same without a death.

Refused by a fault of the server, for want of room, or as it is going away; as somebody wrote in between, or for a
while. This machine stood still for so long that its lease has run out, and the write with it, or the write had left; or
it was on its way while its writer was killed, and is heard when another has gone on. It was done, and the answer is
lost, or says that it took too long. All watches break, or the clock of this machine is set ahead, or back.

Of each of these a write has one: they are much the same to whoever wrote it.
"""
FAULTS = tuple(way for turn in TURNS for way in turn)
DEATHS = (*CRASHES, BELATED)
DONE = (UNANSWERED, TIMED_OUT)
"""It is so, and its writer does not know."""

LATE, ASIDE, TWICE, FORGOTTEN = "late", "aside", "twice", "forgotten"
VIEWS = (LATE, ASIDE, TWICE, FORGOTTEN)
"""For a while nothing is heard of that kind, or of all the others; all is told twice; or nothing is told of what
happens, and who asks later is told that it is too long ago."""

ROBBED, MEDDLED, HURRIED = "robbed", "meddled", "hurried"
OTHERS = (ROBBED, MEDDLED, HURRIED)
"""Just before, somebody else's object takes the place of the one that is meant, or somebody edits that; or people want
the next thing."""

WAYS = (*CRASHES, *FAULTS, *VIEWS, *OTHERS)

SUITES = {"R1": CRASHES, "R2": VIEWS, "R3": FAULTS, "others": OTHERS}
"""As figures are told."""


def suite_of(way: str) -> str:
    return next((suite for suite, ways in SUITES.items() if way in ways), "R1")


class Point(NamedTuple):
    """Which write, and what goes wrong there."""

    write: int
    way: str

    def __str__(self) -> str:
        return f"{self.write}:{self.way}"


class Mark(NamedTuple):
    """The world at one moment of a write: how often it has changed by then, and when that was."""

    changes: int
    at: float


SOON = 0.5
"""Seconds between two moments at which the same world is the same to who begins anew."""


def same(marks: Iterable[tuple[Mark, ...]]) -> dict[Point, Point]:
    """Of each crash, the one that it equals: who is killed leaves nothing behind but the world as it is then."""
    found: dict[Point, Point] = {}
    last, first = Mark(-1, 0.0), Point(0, BEFORE)
    for write, moments in enumerate(marks):
        for way, mark in zip(CRASHES, moments, strict=True):
            if mark.changes != last.changes or abs(mark.at - last.at) > SOON:
                last, first = mark, Point(write, way)
            found[Point(write, way)] = first
    return found


def others(write: int, sent: str, *, hurried: bool) -> Iterator[Point]:
    """What else is tried at a write, as it was sent."""
    for each in TURNS:
        yield Point(write, each[write % len(each)])
    method, path = sent.split()
    # What is gone has left no revision that could be waited for.
    views = (LATE, TWICE) if method == "DELETE" else VIEWS
    yield Point(write, views[write % len(views)])
    if hurried and not write % 2:
        yield Point(write, HURRIED)
    if is_native(path):
        yield Point(write, MEDDLED if method == "PATCH" and write % 2 else ROBBED)


def is_native(path: str) -> bool:
    """One that others could have made, or edited, as well."""
    parts = path.strip("/").split("/")
    names = {each.plural for each in (CLAIMS, NAMESPACES, PODS, REPLICA_SETS)}
    place = 3 if parts[0] == "apis" else 2
    within = len(parts) in {place + 3, place + 4} and parts[place] == "namespaces"
    return within and parts[1] != GROUP and parts[place + 2] not in names
