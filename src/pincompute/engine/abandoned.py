"""Removes what platforms with a real node have left whose folders were deleted without `pin down --purge`."""

from __future__ import annotations

from pathlib import Path

from pincompute.engine import network_slots
from pincompute.engine.down import stop_platform
from pincompute.engine.home import Home
from pincompute.engine.record import PlatformRecord


def remove_abandoned_platforms(folder: Path = network_slots.SLOT_FOLDER) -> None:
    """Stop their processes, remove their networks and control groups, and free their slots.

    The next platform with the slot gets the same network namespace, where rules for the former pods would drop packets
    to new pods with the same addresses.
    """
    if not network_slots.abandoned_slots(folder):
        return
    with network_slots.lock(folder, "removing abandoned platforms"):
        for slot, root in network_slots.abandoned_slots(folder).items():
            stop_platform(Home(root.name, root), PlatformRecord(network_slot=slot))
            network_slots.free_slot(slot, folder)
