"""What a person asked for and what was remembered become one platform: place, ports, nodes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from pincompute.base.certificates import Authority
from pincompute.base.problem import Problem
from pincompute.engine import places, ports
from pincompute.engine.home import Home
from pincompute.engine.nodes import real_node
from pincompute.engine.nodes.shape import Simulated, change
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.record import Record

# With no real node there must be something to run on.
_FEW = 3


class Wish(NamedTuple):
    """The words of `pin up`; what was not said stays as it was."""

    nodes: int | None = None
    shape: str | None = None
    zones: int | None = None
    simulated: bool | None = None
    http_port: int | None = None
    wanted: tuple[str, ...] = ()
    """Neighbours that it is to have, such as kubeflow."""
    unwanted: tuple[str, ...] = ()
    runtime: bool | None = None
    bare: bool | None = None

    def check(self) -> None:
        """Before anything is touched: do the words make sense?"""
        change(Simulated(), self.nodes, self.shape, self.zones)


def settle(home: Home, record: Record, wish: Wish) -> tuple[Record, tuple[Problem, ...]]:
    """The record as it is to be, and why it has no real node where one was wanted."""
    only_simulated = record.only_simulated if wish.simulated is None else wish.simulated
    obstacles = () if only_simulated else real_node.obstacles()
    real = not only_simulated and not obstacles
    settled = msgspec.structs.replace(
        record,
        only_simulated=only_simulated,
        real=real,
        index=places.claim(home, record.index) if real else None,
        simulated=_nodes(record.simulated, wish, real=real),
        neighbours={name: record.neighbours.get(name, "") for name in _neighbours(record, wish)},
        ports=ports.choose(record.ports, wish.http_port),
        runtime=record.runtime if wish.runtime is None else wish.runtime,
        bare=record.bare if wish.bare is None else wish.bare,
    )
    return settled, obstacles


def platform_of(home: Home, record: Record, programs: Programs) -> Platform:
    return Platform(
        home=home,
        programs=programs,
        authority=Authority(home.certificates),
        ports=record.ports,
        index=record.index,
        real=record.real,
        simulated=record.simulated,
        neighbours={name: Path(folder) for name, folder in record.neighbours.items()},
        runtime=record.runtime,
        bare=record.bare,
    )


def _neighbours(record: Record, wish: Wish) -> list[str]:
    return sorted({*record.neighbours, *wish.wanted} - set(wish.unwanted))


def _nodes(before: Simulated, wish: Wish, *, real: bool) -> Simulated:
    wanted = change(before, wish.nodes, wish.shape, wish.zones)
    if wish.nodes is None and not wanted.count and not real:
        return msgspec.structs.replace(wanted, count=_FEW)
    return wanted
