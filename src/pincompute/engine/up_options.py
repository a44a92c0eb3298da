"""Merges the options of `pin up` with the record of earlier starts."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pincompute.base.certificate_authority import Authority
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.engine import network_slots, ports
from pincompute.engine.home import Home
from pincompute.engine.nodes import real_node
from pincompute.engine.nodes.simulated_spec import SimulatedNodes, apply_node_options
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.record import PlatformRecord, read_record

# Without a real node a platform needs simulated nodes to schedule pods on.
_DEFAULT_SIMULATED_NODES = 3
_HOST_AND_PORT = r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}"
_ENSEMBLE = f"{_HOST_AND_PORT}(,{_HOST_AND_PORT}){{0,15}}"


class UpOptions(NamedTuple):
    """Options of `pin up`. None keeps the recorded value."""

    nodes: int | None = None
    node_shape: str | None = None
    zones: int | None = None
    simulated: bool | None = None
    http_port: int | None = None
    with_addons: tuple[str, ...] = ()
    """Add-ons to enable, such as `kubeflow`."""
    without_addons: tuple[str, ...] = ()
    zookeeper: str | None = None
    """Addresses of an ensemble; empty for none."""
    runtime: bool | None = None
    bare: bool | None = None

    def validate(self) -> None:
        """Reject invalid options before anything is changed."""
        apply_node_options(SimulatedNodes(), self.nodes, self.node_shape, self.zones)
        if self.zookeeper and not re.fullmatch(_ENSEMBLE, self.zookeeper):
            what = f"'{self.zookeeper[:100]}' is no address of an ensemble"
            raise Refused(Problem(USAGE, what, next="pin up --zookeeper HOST:PORT,HOST:PORT"))


def resolve_options(
    home: Home, record: PlatformRecord, options: UpOptions
) -> tuple[PlatformRecord, tuple[Problem, ...]]:
    """The new record, and the obstacles to a real node if one was wanted and is impossible."""
    only_simulated = record.only_simulated if options.simulated is None else options.simulated
    obstacles = () if only_simulated else real_node.obstacles()
    real = not only_simulated and not obstacles
    resolved = msgspec.structs.replace(
        record,
        only_simulated=only_simulated,
        real=real,
        network_slot=network_slots.claim_slot(home, record.network_slot) if real else None,
        simulated=_nodes(record.simulated, options, real=real),
        addons={name: record.addons.get(name, "") for name in _addons(record, options)},
        zookeeper=record.zookeeper if options.zookeeper is None else options.zookeeper,
        ports=ports.choose_ports(record.ports, options.http_port, _http_ports_of_others(home)),
        runtime=record.runtime if options.runtime is None else options.runtime,
        bare=record.bare if options.bare is None else options.bare,
    )
    return resolved, obstacles


def _http_ports_of_others(home: Home) -> set[int]:
    """Recorded HTTP ports of the other platforms in the same folder; an unreadable record has none."""
    found = set()
    for file in home.root.parent.glob("*/record.json"):
        with suppress(Refused):
            other = read_record(Home(file.parent.name, file.parent))
            if other and file.parent != home.root:
                found.add(other.ports.get("http", 0))
    return found


def platform_of(home: Home, record: PlatformRecord, programs: Programs) -> Platform:
    return Platform(
        home=home,
        programs=programs,
        authority=Authority(home.certificates),
        ports=record.ports,
        network_slot=record.network_slot,
        real=record.real,
        simulated=record.simulated,
        addons={name: Path(folder) for name, folder in record.addons.items()},
        zookeeper=record.zookeeper,
        wide_services=record.wide_services,
        runtime=record.runtime,
        bare=record.bare,
    )


def _addons(record: PlatformRecord, options: UpOptions) -> list[str]:
    return sorted({*record.addons, *options.with_addons} - set(options.without_addons))


def _nodes(before: SimulatedNodes, options: UpOptions, *, real: bool) -> SimulatedNodes:
    wanted = apply_node_options(before, options.nodes, options.node_shape, options.zones)
    if options.nodes is None and not wanted.count and not real:
        return msgspec.structs.replace(wanted, count=_DEFAULT_SIMULATED_NODES)
    return wanted
