"""A platform as a value: everything that the description of a part depends on."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pincompute.base.certificate_authority import Authority
from pincompute.engine.home import Home
from pincompute.engine.network_slots import service_range
from pincompute.engine.nodes.simulated_spec import SimulatedNodes


class Programs(NamedTuple):
    """The programs that build.py builds."""

    folder: Path

    @property
    def kubernetes(self) -> Path:
        """etcd, API server, controller manager, scheduler, kubelet, kube-proxy and kubectl in one binary; the first
        argument selects the program."""
        return self.folder / "kubernetes"

    @property
    def kwok(self) -> Path:
        return self.folder / "kwok"

    @property
    def dns(self) -> Path:
        return self.folder / "dns"

    @property
    def pause(self) -> Path:
        """Statically linked, so that it can be the only file of an image."""
        return self.folder / "pause"

    @property
    def stages(self) -> Path:
        """Stage files of kwok: the life cycle of simulated pods and nodes."""
        return self.folder / "stages"


class Platform(NamedTuple):
    """Input of all functions that describe, prepare or clean up parts. Each command builds it from the record."""

    home: Home
    programs: Programs
    authority: Authority
    ports: Mapping[str, int]
    """Ports by name: `api`, `etcd`, `registry`, `desk`, `operator`, `http` and the others of ports.py."""
    network_slot: int | None = None
    """See network_slots.py; None without a network of its own."""
    real: bool = False
    """Whether the platform has a real node."""
    simulated: SimulatedNodes = SimulatedNodes()
    addons: Mapping[str, Path] = MappingProxyType({})
    """Enabled add-ons, such as `prometheus`, each with the folder of its programs."""
    zookeeper: str = ""
    """Addresses of an ensemble that the platform does not run; empty for none."""
    bare: bool = False
    """Whether it is Kubernetes without PinCompute, to be used with `pin install`."""
    wide_services: bool = True
    """Whether the range of Services has 4,094 addresses; else it has 254."""
    runtime: bool = False
    """Whether the bundled runtimes are created, which give workloads identity and logs."""

    @property
    def name(self) -> str:
        return self.home.name

    @property
    def network_namespace(self) -> str:
        """Network namespace of the real node; empty without one."""
        return "" if self.network_slot is None else f"pin{self.network_slot}"

    @property
    def address(self) -> str:
        """Listen address of the API server and the registry: the host's end of the veth pair to the node."""
        return "127.0.0.1" if self.network_slot is None else f"10.201.{self.network_slot}.1"

    @property
    def node_address(self) -> str:
        return "127.0.0.1" if self.network_slot is None else f"10.201.{self.network_slot}.2"

    @property
    def pod_range(self) -> str:
        return f"10.202.{self.network_slot or 0}.0/24"

    @property
    def service_range(self) -> str:
        return service_range(self.network_slot or 0, wide=self.wide_services)

    @property
    def simulated_pod_range(self) -> str:
        return f"10.204.{self.network_slot or 0}.0/24"

    @property
    def dns_address(self) -> str:
        """Cluster IP of kube-dns."""
        return str(ip_network(self.service_range)[10])

    @property
    def api_service_address(self) -> str:
        """Cluster IP of the Service `kubernetes`."""
        return str(ip_network(self.service_range)[1])

    @property
    def node_name(self) -> str:
        return f"node-{self.name}"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.address}:{self.ports['api']}"

    @property
    def log_store_url(self) -> str:
        """URL of the log store; empty without a real node, as simulated pods print nothing."""
        return f"https://{self.address}:{self.ports['log-store']}" if self.real else ""

    @property
    def secret_store_url(self) -> str:
        """URL of the secret store; empty without a real node, as simulated pods read nothing."""
        return f"https://{self.address}:{self.ports['secret-store']}" if self.real and not self.bare else ""

    @property
    def config_store_url(self) -> str:
        """URL of the config store; empty without a real node, as simulated pods read no files."""
        return f"https://{self.address}:{self.ports['config-store']}" if self.real else ""

    @property
    def trust_domain(self) -> str:
        return f"{self.name}.pincompute.local"

    def kubeconfig_of(self, user: str) -> Path:
        """Kubeconfig file of a user such as `pincompute-desk`."""
        return self.home.configs / f"{user}.kubeconfig"
