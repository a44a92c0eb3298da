"""Names of native objects never collide, neither within a workload nor between two workloads of any names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hypothesis import Phase, given, settings

from pincompute.api.kinds import WORKLOADS
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from snapshot_strategies import plan_snapshot, snapshots

_NUMBER = re.compile(r"(?<=-)[0-9]+(?=-|$)")
HASH = "0123456789ab"
_HASH = re.compile(r"(?<=-)(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12}(?=-|$)")


class NameSuffix(NamedTuple):
    """Suffix of a native object's name after the workload's name. `-1` stands for any number."""

    native: str
    suffix: str


def suffixes(snapshot: Snapshot) -> Iterator[NameSuffix]:
    """Suffixes of all native objects, including retained ones."""
    name = snapshot.owner.metadata.name
    planned = plan_snapshot(snapshot)
    wanted = [(each["kind"], each["metadata"]["name"]) for each in planned.wanted]
    for kind, native_name in (*wanted, *planned.retained):
        if native_name.startswith(name):
            suffix = _HASH.sub(HASH, native_name.removeprefix(name))
            yield NameSuffix(kind, _NUMBER.sub("1", suffix))


def clash(first: NameSuffix, second: NameSuffix) -> str:
    """Suffix for a workload's name with which two workloads would have a native object of the same name.

    Names that end in a hash of their content are equal only if the content is.
    """
    if first.suffix.endswith(HASH):
        return ""
    longer, shorter = (first, second) if len(first.suffix) > len(second.suffix) else (second, first)
    between = longer.suffix.removesuffix(shorter.suffix) if longer.suffix.endswith(shorter.suffix) else ""
    return between if first.native == second.native and re.fullmatch("(-?[a-z0-9]+)+", between) else ""


def find_suffixes(kind: str) -> set[NameSuffix]:
    """Suffixes of many workloads of a kind."""
    all_: set[NameSuffix] = set()

    @settings(max_examples=50, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(snapshots(kind))
    def collect(snapshot: Snapshot) -> None:
        all_.update(suffixes(snapshot))

    collect()
    return all_


def test_no_two_workloads_have_native_objects_of_the_same_name() -> None:
    all_ = {(kind, each) for kind in PLANNERS if kind in WORKLOADS for each in find_suffixes(kind)}
    clashes = {
        f"{first.native} a{first.suffix} of {kind} a could belong to {other} a{between}"
        for (kind, first), (other, second) in product(all_, all_)
        if len(first.suffix) > len(second.suffix) and (between := clash(first, second))
    }
    assert clashes == set()
