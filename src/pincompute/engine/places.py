"""The hundred places of a machine: a platform with a network of its own has one, and its addresses follow from it."""

from __future__ import annotations

from pathlib import Path

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NODE_IMPOSSIBLE
from pincompute.engine.home import Home
from pincompute.engine.lock import held

COUNT = 100
# Of the machine, not of one state folder: networks are seen by all. A reboot forgets both.
FOLDER = Path("/run/pincompute")


def claim(home: Home, wanted: int | None, folder: Path = FOLDER) -> int:
    """The place that the platform has; else the one it had, if that is free; else the first free one."""
    with held(folder / "lock", "choosing a place", lambda _: None):
        # A place is free where its owner has no folder: whoever starts at this moment must see one.
        home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        owners = _owners(folder)
        mine = [place for place, owner in owners.items() if owner == home.root]
        free = [place for place in range(COUNT) if place not in owners]
        preferred = [place for place in (wanted,) if place in free]
        for place in (*mine, *preferred, *free):
            (folder / str(place)).write_text(str(home.root))
            return int(place)
    raise Refused(
        Problem(
            NODE_IMPOSSIBLE,
            f"all {COUNT} networks of this machine are taken",
            next="pin status, and `pin down --purge` for what is not needed",
        )
    )


def owned(home: Home, folder: Path = FOLDER) -> int | None:
    return next((place for place, owner in _owners(folder).items() if owner == home.root), None)


def release(home: Home, folder: Path = FOLDER) -> None:
    """The last one leaves nothing behind."""
    if home.root not in _claims(folder).values():
        return
    with held(folder / "lock", "giving a place back", lambda _: None):
        for place, owner in _claims(folder).items():
            if owner == home.root:
                (folder / str(place)).unlink()
        if not _claims(folder):
            (folder / "lock").unlink()
            folder.rmdir()


def _owners(folder: Path) -> dict[int, Path]:
    """Without those whose state is gone: somebody removed the folder by hand, and its place is free."""
    return {place: owner for place, owner in _claims(folder).items() if owner.exists()}


def _claims(folder: Path) -> dict[int, Path]:
    """Who wrote that a place is theirs, in the order of the places."""
    places = sorted(int(file.name) for file in folder.glob("[0-9]*"))
    return {place: Path((folder / str(place)).read_text()) for place in places}
