"""CPU affinity: API servers run on one half of the cores and the measured processes on the other."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

_ALL = sorted(os.sched_getaffinity(0))
_HALF = len(_ALL) // 2
SERVER_CPUS = frozenset(_ALL[:_HALF] or _ALL)
"""Clients run on these cores, too: in production they have machines of their own."""
CONTENDER_CPUS = frozenset(_ALL[_HALF:])


@contextmanager
def pinned_to(cores: Collection[int]) -> Iterator[None]:
    """Pins this process to the cores. Child processes started in the block keep the affinity."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
