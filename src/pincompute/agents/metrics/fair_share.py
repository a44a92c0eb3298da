"""Bounds what is shown of all projects together, so that a project with very many replicas leaves room for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

MAX_TOTAL = 2000
MAX_OF_PROJECT = 200

T = TypeVar("T")


class FairShare(NamedTuple, Generic[T]):
    chosen: list[T]
    left_out: int


def fair_share(entries: Iterable[T], project_of: Callable[[T], str]) -> FairShare[T]:
    """The first entries of each project, in the given order."""
    chosen: list[T] = []
    counts: Counter[str] = Counter()
    left_out = 0
    for entry in entries:
        project = project_of(entry)
        if counts[project] < MAX_OF_PROJECT and len(chosen) < MAX_TOTAL:
            counts[project] += 1
            chosen.append(entry)
        else:
            left_out += 1
    return FairShare(chosen, left_out)
