"""The folder of one platform: what lies where."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


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
