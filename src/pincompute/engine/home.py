"""The folder of one platform: what lies where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NAME_INVALID, PLATFORM_UNKNOWN

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


class Home(NamedTuple):
    """`<state>/<name>/`, private to its owner."""

    name: str
    root: Path

    @property
    def certificates(self) -> Path:
        return self.root / "certificates"

    @property
    def configs(self) -> Path:
        """Files that we write for parts to read; made anew at each start."""
        return self.root / "configs"

    @property
    def data(self) -> Path:
        """What parts keep, a folder each: `data/etcd`, `data/registry`."""
        return self.root / "data"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.root / "kubeconfig"

    @property
    def lock(self) -> Path:
        """Beside the folder, for it must outlive it."""
        return self.root.with_name(f".{self.name}.lock")


def home_of(name: str, state: Path) -> Home:
    """The folder of the platform of that name, which may not be there yet."""
    if not _NAME.fullmatch(name):
        raise Refused(
            Problem(
                NAME_INVALID,
                f"'{name}' cannot be the name of a platform",
                note="at most 20 lower-case letters, digits and dashes, beginning with a letter",
                next="--name staging",
            )
        )
    return Home(name, state.absolute() / name)


def known(home: Home) -> None:
    """Refuse a platform that was never made, and tell which there are."""
    if home.root.is_dir():
        return
    others = sorted(folder.name for folder in home.root.parent.glob("*") if (folder / "record.json").exists())
    raise Refused(
        Problem(
            PLATFORM_UNKNOWN,
            f"there is no platform '{home.name}' on this machine",
            note=f"there are: {', '.join(others)}" if others else "",
            next=f"pin up --name {home.name}" if home.name != "main" else "pin up",
        )
    )
