"""One platform as a value: everything that a part needs to know to be described."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pincompute.base.certificates import Authority
from pincompute.engine.home import Home
from pincompute.engine.nodes.shape import Simulated


class Programs(NamedTuple):
    """What the engine built: see build.py."""

    folder: Path

    @property
    def kubernetes(self) -> Path:
        """etcd, API server, controller manager, scheduler, kubelet, kube-proxy and kubectl: the first word chooses."""
        return self.folder / "kubernetes"

    @property
    def kwok(self) -> Path:
        return self.folder / "kwok"

    @property
    def dns(self) -> Path:
        return self.folder / "dns"

    @property
    def pause(self) -> Path:
        """Static, so that it can be an image's only file."""
        return self.folder / "pause"

    @property
    def stages(self) -> Path:
        """By these files kwok knows what becomes of a simulated pod or node."""
        return self.folder / "stages"


class Platform(NamedTuple):
    """Handed to everyone who describes, prepares or cleans a part. It is made anew at each command from the record."""

    home: Home
    programs: Programs
    authority: Authority
    ports: Mapping[str, int]
    """By name: `api`, `etcd`, `registry`, `desk`, `operator`, `http` and the rest of ports.py."""
    index: int | None = None
    """Which of the hundred places on this machine it has; without a network of its own, none."""
    real: bool = False
    """Whether it has a real node."""
    simulated: Simulated = Simulated()
    neighbours: Mapping[str, Path] = MappingProxyType({})
    """Those that it asked for, such as `kubeflow`, each with the folder of its programs."""
    bare: bool = False
    """Whether it is Kubernetes alone, as a cluster that exists: `pin install` brings the rest."""
    runtime: bool = False
    """Whether workloads have the parts that come with the platform: identity, and what is built on it."""

    @property
    def name(self) -> str:
        return self.home.name

    @property
    def namespace(self) -> str:
        """Its network namespace, where the real node lives."""
        return "" if self.index is None else f"pin{self.index}"

    @property
    def address(self) -> str:
        """Where the API server and the registry listen: the host's end of the pair that joins it to the node."""
        return "127.0.0.1" if self.index is None else f"10.201.{self.index}.1"

    @property
    def node_address(self) -> str:
        return "127.0.0.1" if self.index is None else f"10.201.{self.index}.2"

    @property
    def pod_range(self) -> str:
        return f"10.202.{self.index or 0}.0/24"

    @property
    def service_range(self) -> str:
        return f"10.203.{self.index or 0}.0/24"

    @property
    def simulated_pod_range(self) -> str:
        return f"10.204.{self.index or 0}.0/24"

    @property
    def dns_address(self) -> str:
        """The cluster address of kube-dns."""
        return f"10.203.{self.index or 0}.10"

    @property
    def node_name(self) -> str:
        return f"node-{self.name}"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.address}:{self.ports['api']}"

    @property
    def log_store(self) -> str:
        """Where lines are kept; where nothing runs for real, nothing is printed."""
        return f"https://{self.address}:{self.ports['log-store']}" if self.real else ""

    @property
    def trust_domain(self) -> str:
        return f"{self.name}.pincompute.local"

    def config(self, user: str) -> Path:
        """The kubeconfig of one user, such as `pincompute-desk`."""
        return self.home.configs / f"{user}.kubeconfig"
