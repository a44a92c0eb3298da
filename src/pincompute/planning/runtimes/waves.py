"""The waves of a roll: in which order they come, and whether they have reached a workload."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pincompute.api.runtime import Cursor, Roll
from pincompute.api.workload import Tier, Workload

ZONE = "topology.kubernetes.io/zone"


class Wave(NamedTuple):
    """One step: of those in this zone and tier, so many percent have the new runtime after it."""

    zone: str
    """Empty for what is bound to none of the zones that are named; so is the tier."""
    tier: str
    percent: int

    def words(self, roll: Roll) -> str:
        whom = [each for each in (self.tier, f"zone {self.zone}" if self.zone else "") if each]
        others = "the others" if roll.zones or roll.tiers else ""
        of = " in ".join(whom) or others
        return f"{self.percent}% of {of}" if of else f"{self.percent}%"


def waves(roll: Roll) -> tuple[Wave, ...]:
    """All of them, in their order: zone by zone, in each tier by tier, in each percent by percent."""
    zones = [*roll.zones, ""]
    tiers = [*map(str, roll.tiers), *([] if len(roll.tiers) == len(Tier) else [""])]
    return tuple(Wave(zone, tier, percent) for zone in zones for tier in tiers for percent in roll.waves)


def wave_of(cursor: Cursor) -> Wave:
    return Wave(cursor.zone, cursor.tier, cursor.percent)


def following(roll: Roll, cursor: Cursor | None) -> Wave | None:
    """The wave after this one, also where the percents were changed on the way; nothing after the last."""
    return next((each for each in waves(roll) if cursor is None or _later(roll, each, cursor)), None)


def counted(roll: Roll, cursor: Cursor) -> tuple[int, int]:
    """For people: 2 of 3."""
    every = waves(roll)
    return sum(not _later(roll, each, cursor) for each in every), len(every)


def reached(owner: Workload, roll: Roll, cursor: Cursor) -> bool:
    """Whether the roll has come to this workload, be it new or old."""
    here, there = _group(roll, zone_of(owner), str(owner.spec.tier)), _group(roll, cursor.zone, cursor.tier)
    return here < there or (here == there and bucket(owner) < cursor.percent)


def wave_reaching(owner: Workload, roll: Roll) -> int:
    """The place of the wave that will reach it, from 0."""
    here = _group(roll, zone_of(owner), str(owner.spec.tier))
    mine = bucket(owner)
    every = enumerate(waves(roll))
    return next(i for i, each in every if _group(roll, each.zone, each.tier) == here and mine < each.percent)


def bucket(owner: Workload) -> int:
    """A number from 0 to 99 that a workload keeps for life, and that nobody chooses."""
    whose = owner.metadata.uid or owner.metadata.place
    return int.from_bytes(hashlib.sha256(whose.encode()).digest()[:8]) % 100


def zone_of(owner: Workload) -> str:
    """The zone that its template binds it to."""
    selector = owner.spec.template.get("spec", {}).get("nodeSelector", {})
    return str(selector.get(ZONE, ""))


def _later(roll: Roll, wave: Wave, cursor: Cursor) -> bool:
    return (_group(roll, wave.zone, wave.tier), wave.percent) > (_group(roll, cursor.zone, cursor.tier), cursor.percent)


def _group(roll: Roll, zone: str, tier: str) -> tuple[int, int]:
    """The place of a zone and a tier in the order; those that are not named come last."""
    zones, tiers = list(roll.zones), list(map(str, roll.tiers))
    return (
        zones.index(zone) if zone in zones else len(zones),
        tiers.index(tier) if tier in tiers else len(tiers),
    )
