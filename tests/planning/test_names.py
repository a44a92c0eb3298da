"""Names never collide: not within a workload, and not between two, whatever one calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hypothesis import Phase, given, settings

from pincompute.api.kinds import WORKLOADS
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from worlds import plan, snapshots

_NUMBER = re.compile(r"(?<=-)[0-9]+(?=-|$)")
DIGEST = "0123456789ab"
_DIGEST = re.compile(r"(?<=-)(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12}(?=-|$)")


class Ending(NamedTuple):
    """What natives of one kind carry after the workload's own name: `-1` where 1 may be any number."""

    native: str
    said: str


def endings(snapshot: Snapshot) -> Iterator[Ending]:
    """Of all natives, those that are kept as well."""
    name = snapshot.owner.metadata.name
    planned = plan(snapshot)
    made = [(each["kind"], each["metadata"]["name"]) for each in planned.wanted]
    for kind, called in (*made, *planned.kept):
        if called.startswith(name):
            said = _DIGEST.sub(DIGEST, called.removeprefix(name))
            yield Ending(kind, _NUMBER.sub("1", said))


def clash(first: Ending, second: Ending) -> str:
    """What one would add to a workload's name so that a native of another is called as one of its own.

    Names that end in the digest of what is in them are only the same where that is the same.
    """
    if first.said.endswith(DIGEST):
        return ""
    longer, shorter = (first, second) if len(first.said) > len(second.said) else (second, first)
    between = longer.said.removesuffix(shorter.said) if longer.said.endswith(shorter.said) else ""
    return between if first.native == second.native and re.fullmatch("(-?[a-z0-9]+)+", between) else ""


def found(kind: str) -> set[Ending]:
    """Of many workloads of a kind, new ones and others."""
    all_: set[Ending] = set()

    @settings(max_examples=50, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(snapshots(kind))
    def look(snapshot: Snapshot) -> None:
        all_.update(endings(snapshot))

    look()
    return all_


def test_what_is_between_the_names_of_natives_cannot_be_a_name() -> None:
    """Else the native of one workload would be that of another, which is called as what is between."""
    all_ = {(kind, each) for kind in PLANNERS if kind in WORKLOADS for each in found(kind)}
    clashes = {
        f"the {mine.native} a{mine.said} of the {kind} a may be one of the {other} a{between}"
        for (kind, mine), (other, theirs) in product(all_, all_)
        if len(mine.said) > len(theirs.said) and (between := clash(mine, theirs))
    }
    assert clashes == set()
