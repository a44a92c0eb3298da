"""Number, size and zones of simulated nodes, as options of `pin up`."""

from __future__ import annotations

import re

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NODES_INVALID

MAX_NODES = 10_000
MAX_ZONES = 26

_SHAPE = re.compile(r"([1-9]\d{0,3})cpu,([1-9]\d{0,5}(?:Mi|Gi|Ti))")


class SimulatedNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Number and size of the simulated nodes of a platform."""

    count: int = 0
    cpu: str = "32"
    memory: str = "128Gi"
    zones: int = 1


def apply_node_options(
    before: SimulatedNodes, count: int | None, shape: str | None, zones: int | None
) -> SimulatedNodes:
    """Apply `--nodes`, `--node-shape` and `--zones`; None keeps a value. Raises with all invalid options."""
    problems = []
    if count is not None and not 0 <= count <= MAX_NODES:
        problems.append(
            Problem(NODES_INVALID, f"--nodes {count}: must be between 0 and {MAX_NODES}", next="--nodes 50")
        )
    if zones is not None and not 1 <= zones <= MAX_ZONES:
        problems.append(Problem(NODES_INVALID, f"--zones {zones}: must be between 1 and {MAX_ZONES}", next="--zones 3"))
    parsed = _SHAPE.fullmatch(shape or f"{before.cpu}cpu,{before.memory}")
    if parsed is None:
        problems.append(
            Problem(
                NODES_INVALID,
                f"--node-shape '{shape}': must be a number of CPUs and an amount of memory",
                next="--node-shape 32cpu,128Gi",
            )
        )
    if problems or parsed is None:
        raise Refused(*problems)
    return SimulatedNodes(
        count=before.count if count is None else count,
        cpu=parsed[1],
        memory=parsed[2],
        zones=before.zones if zones is None else zones,
    )
