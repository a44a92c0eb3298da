"""Which runtime a workload is made with: the current one, the next one, or an older one that it holds."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem


class Runtimes(NamedTuple):
    """Every runtime of a cluster, and how far a roll has come."""


class Chosen(NamedTuple):
    """The runtime of one workload, and those of its parts that serve it."""

    number: int = 0
    """0 is none: the cluster has no runtime."""
    parts: tuple[object, ...] = ()
    problems: tuple[Problem, ...] = ()


def runtime_of(owner: Workload, runtimes: Runtimes, now: datetime) -> Chosen:
    del owner, runtimes, now
    return Chosen()
