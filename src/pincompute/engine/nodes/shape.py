"""Simulated nodes as a person asks for them: how many, how big, in how many zones."""

from __future__ import annotations

import re

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NODES_INVALID

MOST_NODES = 10_000
MOST_ZONES = 26

_SHAPE = re.compile(r"([1-9]\d{0,3})cpu,([1-9]\d{0,5}(?:Mi|Gi|Ti))")


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated nodes of a platform."""

    count: int = 0
    cpu: str = "32"
    memory: str = "128Gi"
    zones: int = 1


def change(before: Simulated, count: int | None, shape: str | None, zones: int | None) -> Simulated:
    """By the words of `--nodes`, `--node-shape` and `--zones`: what is not said stays; all that is wrong is told."""
    problems = []
    if count is not None and not 0 <= count <= MOST_NODES:
        problems.append(Problem(NODES_INVALID, f"--nodes {count} is not between 0 and {MOST_NODES}", next="--nodes 50"))
    if zones is not None and not 1 <= zones <= MOST_ZONES:
        problems.append(Problem(NODES_INVALID, f"--zones {zones} is not between 1 and {MOST_ZONES}", next="--zones 3"))
    parsed = _SHAPE.fullmatch(shape or f"{before.cpu}cpu,{before.memory}")
    if parsed is None:
        problems.append(
            Problem(
                NODES_INVALID,
                f"--node-shape '{shape}' is not a number of processors and an amount of memory",
                next="--node-shape 32cpu,128Gi",
            )
        )
    if problems or parsed is None:
        raise Refused(*problems)
    return Simulated(
        count=before.count if count is None else count,
        cpu=parsed[1],
        memory=parsed[2],
        zones=before.zones if zones is None else zones,
    )
