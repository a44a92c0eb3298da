"""Waves of a roll: their order, and whether one has reached a workload."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pincompute.api.runtime import Roll, RollCursor
from pincompute.api.workload import Tier, Workload

DAEMONS_FIRST = 0
"""Percentage of the wave before all others, which has the daemons that the runtime pins, and no other workload."""
ZONE_LABEL = "topology.kubernetes.io/zone"


class RollWave(NamedTuple):
    """One wave: after it, this percentage of the workloads of a zone and tier have the new runtime."""

    zone: str
    """Empty for workloads outside of the listed zones. The same holds for the tier."""
    tier: str
    percent: int

    def text(self, roll: Roll) -> str:
        if self.percent == DAEMONS_FIRST:
            return "pinned daemons"
        names = [each for each in (self.tier, f"zone {self.zone}" if self.zone else "") if each]
        others = "the others" if roll.zones or roll.tiers else ""
        group = " in ".join(names) or others
        return f"{self.percent}% of {group}" if group else f"{self.percent}%"


def roll_waves(roll: Roll) -> tuple[RollWave, ...]:
    """All waves in order: by zone, then by tier, then by percentage."""
    zones = [*roll.zones, ""]
    tiers = [*map(str, roll.tiers), *([] if len(roll.tiers) == len(Tier) else [""])]
    return tuple(RollWave(zone, tier, percent) for zone in zones for tier in tiers for percent in roll.waves)


def wave_at(cursor: RollCursor) -> RollWave:
    return RollWave(cursor.zone, cursor.tier, cursor.percent)


def wave_after(roll: Roll, cursor: RollCursor | None) -> RollWave | None:
    """Next wave, even if the percentages were changed meanwhile; None after the last."""
    return next((each for each in roll_waves(roll) if cursor is None or _comes_after(roll, each, cursor)), None)


def wave_position(roll: Roll, cursor: RollCursor) -> tuple[int, int]:
    """Number of the current wave and number of all waves, for messages such as 2 of 3."""
    waves = roll_waves(roll)
    return sum(not _comes_after(roll, each, cursor) for each in waves), len(waves)


def wave_has_reached(owner: Workload, roll: Roll, cursor: RollCursor) -> bool:
    """True if the roll has reached the workload. This holds for new workloads as for old ones."""
    group, reached = (
        _group_order(roll, workload_zone(owner), str(owner.spec.tier)),
        _group_order(roll, cursor.zone, cursor.tier),
    )
    return group < reached or (group == reached and rollout_bucket(owner) < cursor.percent)


def wave_index_of(owner: Workload, roll: Roll) -> int:
    """Index, from 0, of the wave that reaches the workload."""
    group = _group_order(roll, workload_zone(owner), str(owner.spec.tier))
    bucket = rollout_bucket(owner)
    waves = enumerate(roll_waves(roll))
    return next(i for i, wave in waves if _group_order(roll, wave.zone, wave.tier) == group and bucket < wave.percent)


def rollout_bucket(owner: Workload) -> int:
    """Number from 0 to 99, derived from the uid, so that it never changes and cannot be chosen."""
    identity = owner.metadata.uid or owner.metadata.key
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8]) % 100


def workload_zone(owner: Workload) -> str:
    """Zone that the node selector of the template requires; empty without one."""
    selector = owner.spec.template.get("spec", {}).get("nodeSelector", {})
    return str(selector.get(ZONE_LABEL, ""))


def _comes_after(roll: Roll, wave: RollWave, cursor: RollCursor) -> bool:
    return (_group_order(roll, wave.zone, wave.tier), wave.percent) > (
        _group_order(roll, cursor.zone, cursor.tier),
        cursor.percent,
    )


def _group_order(roll: Roll, zone: str, tier: str) -> tuple[int, int]:
    """Position of a zone and a tier in the order. Those that are not listed come last."""
    zones, tiers = list(roll.zones), list(map(str, roll.tiers))
    return (
        zones.index(zone) if zone in zones else len(zones),
        tiers.index(tier) if tier in tiers else len(tiers),
    )
