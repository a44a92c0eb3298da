"""Where the copies of what is planned would find room, as things are: for a person who is about to say yes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pincompute.objects.content import Object
from pincompute.planning.pods.templates import templates
from pincompute.planning.why.guests import Guest
from pincompute.planning.why.room import MOST, Room, fit, told


class Coming(NamedTuple):
    """Copies that would come."""

    of: str
    guest: Guest


def coming(natives: Iterable[Object]) -> list[Coming]:
    """One of each sort; a daemon is on every node that takes it, and asks nobody for room."""
    made = (each for each in templates(natives, 0) if each.copies)
    return [
        Coming(each.native, msgspec.convert({"metadata": {"name": ""}, "spec": each.template["spec"]}, Guest))
        for each in made
    ]


def fits(copies: Sequence[Coming], room: Room) -> Iterator[str]:
    """Nothing where nobody knows the nodes."""
    if not room.nodes:
        return
    for each in copies:
        of = f" of {each.of}" if len(copies) > 1 else ""
        found = fit(each.guest, room)
        if found.copies:
            more = f"{found.copies:,} more {'copy' if found.copies == 1 else 'copies'}{of} on"
            nodes = f"{found.nodes} {'node' if found.nodes == 1 else 'nodes'}"
            yield f"{more} {nodes}" if found.all_counted else f"at least {more} the {MOST} largest nodes"
        else:
            why = told(each.guest, room, "copy") or "no node has all of what it needs free at once"
            yield f"no more copies{of} now: {why}"
