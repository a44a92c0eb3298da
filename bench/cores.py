"""Cores: an API server has one half of them, and whoever is held against it the other: neither takes from the other."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

_ALL = sorted(os.sched_getaffinity(0))
_HALF = len(_ALL) // 2
SERVERS = frozenset(_ALL[:_HALF] or _ALL)
"""Those who only ask are there, too: elsewhere they have machines of their own."""
CONTENDERS = frozenset(_ALL[_HALF:])


@contextmanager
def on(cores: Collection[int]) -> Iterator[None]:
    """Whatever is begun meanwhile stays there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
