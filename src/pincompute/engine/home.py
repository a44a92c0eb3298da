"""Layout of a platform's folder, `<state>/<name>/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NAME_INVALID, PLATFORM_UNKNOWN

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


class Home(NamedTuple):
    """The folder of one platform; only its owner has access."""

    name: str
    root: Path

    @property
    def certificates(self) -> Path:
        return self.root / "certificates"

    @property
    def configs(self) -> Path:
        """Configuration files of parts, rewritten at each start."""
        return self.root / "configs"

    @property
    def data(self) -> Path:
        """Persistent data of parts, a folder each: `data/etcd`, `data/registry`."""
        return self.root / "data"

    @property
    def volumes(self) -> Path:
        """Volumes that the storage agent creates, a folder each."""
        return self.data / "volumes"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.root / "kubeconfig"

    @property
    def lock(self) -> Path:
        """Lock file; it is beside the folder, as `pin down --purge` holds it while it removes the folder."""
        return self.root.with_name(f".{self.name}.lock")


def home_of(name: str, state: Path) -> Home:
    """The folder of a platform, which need not exist; rejects invalid names."""
    if not _NAME.fullmatch(name):
        raise Refused(
            Problem(
                NAME_INVALID,
                f"'{name}' is not a valid platform name",
                note="must be at most 20 lower-case letters, digits and dashes, and start with a letter",
                next="--name staging",
            )
        )
    return Home(name, state.absolute() / name)


def require_platform(home: Home) -> None:
    """Reject the name of a platform that does not exist; the error lists the existing ones."""
    if home.root.is_dir():
        return
    others = sorted(folder.name for folder in home.root.parent.glob("*") if (folder / "record.json").exists())
    raise Refused(
        Problem(
            PLATFORM_UNKNOWN,
            f"no platform '{home.name}' on this machine",
            note=f"existing platforms: {', '.join(others)}" if others else "",
            next=f"pin up --name {home.name}" if home.name != "main" else "pin up",
        )
    )
