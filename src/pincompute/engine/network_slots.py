"""Network slots: numbers from 0 to 99, one for each platform with a real node on this machine.

The name of the network namespace and all addresses of a platform follow from its slot.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NODE_IMPOSSIBLE
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.home import Home

SLOT_COUNT = 100
# Networks are global to the machine, so slots are, too; they are not kept in a state folder. A reboot removes both.
SLOT_FOLDER = Path("/run/pincompute")


def service_range(slot: int, *, wide: bool) -> str:
    """Range of the Services of the platform with this slot.

    A /20 of 10.208.0.0/12 for each slot. Platforms of 0.2 and before have a /24 of 10.203.0.0/16 and keep it: the
    addresses of their Services are recorded in etcd.
    """
    return f"10.{208 + slot // 16}.{slot % 16 * 16}.0/20" if wide else f"10.203.{slot}.0/24"


def claim_slot(home: Home, wanted: int | None, folder: Path = SLOT_FOLDER) -> int:
    """The slot that the platform holds; else the wanted one, if it is free; else the first free one."""
    with lock(folder, "choosing a network slot"):
        # A slot whose owner has no folder counts as abandoned, so the folder is created first.
        home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        claims = _claims(folder)
        held = [slot for slot, owner in claims.items() if owner == home.root]
        free = [slot for slot in range(SLOT_COUNT) if slot not in claims]
        preferred = [slot for slot in (wanted,) if slot in free]
        for slot in (*held, *preferred, *free):
            (folder / str(slot)).write_text(str(home.root))
            return int(slot)
    raise Refused(
        Problem(
            NODE_IMPOSSIBLE,
            f"all {SLOT_COUNT} network slots of this machine are in use",
            next="pin down --purge --name NAME, for a platform that is not needed",
        )
    )


def owned_slot(home: Home, folder: Path = SLOT_FOLDER) -> int | None:
    return next((slot for slot, owner in _claims(folder).items() if owner == home.root), None)


def abandoned_slots(folder: Path = SLOT_FOLDER) -> dict[int, Path]:
    """Claims of platforms whose folders were deleted by hand, with those folders."""
    return {slot: owner for slot, owner in _claims(folder).items() if not owner.exists()}


def release_slot(home: Home, folder: Path = SLOT_FOLDER) -> None:
    """Release the platform's slot; the last release removes the folder."""
    if home.root not in _claims(folder).values():
        return
    with lock(folder, "releasing a network slot"):
        for slot, owner in _claims(folder).items():
            if owner == home.root:
                free_slot(slot, folder)
        if not _claims(folder):
            (folder / "lock").unlink()
            folder.rmdir()


def free_slot(slot: int, folder: Path = SLOT_FOLDER) -> None:
    """Remove the claim of a slot; needs the lock."""
    (folder / str(slot)).unlink()


def lock(folder: Path, doing: str) -> AbstractContextManager[None]:
    """Excludes other commands that change slots."""
    return exclusive_lock(folder / "lock", doing, lambda _: None)


def _claims(folder: Path) -> dict[int, Path]:
    """All claimed slots with the folders of their platforms, in ascending order."""
    slots = sorted(int(file.name) for file in folder.glob("[0-9]*"))
    return {slot: Path((folder / str(slot)).read_text()) for slot in slots}
