"""Processor time that requests take from an event loop, and the reference loop that it is compared with."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache

from pincompute.base.problem import Refused

ALLOWED_REFERENCE_LOOPS = 3
"""How long a loop may be held: 50 ms on the machine of the reference figures, and as much more on a slower one."""
_REFERENCE_STEPS = 180_000
_RUNS = 3
_RUN = "_run"


class HoldMeter:
    """The longest callback of an event loop, in processor time of its thread: others that run do not count."""

    longest_ms = 0.0


@contextmanager
def measured_holds() -> Generator[HoldMeter]:
    """Measures every callback of the event loops of this process, without garbage collection."""
    # asyncio has no hook for this: its debug mode logs slow callbacks by the clock, and slows all of them down.
    meter, run = HoldMeter(), vars(asyncio.Handle)[_RUN]

    def run_measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        meter.longest_ms = max(meter.longest_ms, (time.thread_time() - began) * 1000)

    collects = gc.isenabled()
    gc.disable()
    setattr(asyncio.Handle, _RUN, run_measured)
    try:
        yield meter
    finally:
        setattr(asyncio.Handle, _RUN, run)
        if collects:
            gc.enable()


def least_cost_ms(work: Callable[[], object]) -> float:
    """Processor time of the work; the least of several runs, as what else the machine does only adds to it."""
    costs_ms: list[float] = []
    for _ in range(_RUNS):
        began = time.thread_time()
        # A refusal is a result like any other.
        with suppress(Refused, ValueError):
            work()
        costs_ms.append((time.thread_time() - began) * 1000)
    return min(costs_ms)


@cache
def allowed_ms() -> float:
    """The bound of a single hold on this machine."""
    return ALLOWED_REFERENCE_LOOPS * least_cost_ms(_run_reference_loop)


def _run_reference_loop() -> None:
    names: dict[str, int] = {}
    for number in range(_REFERENCE_STEPS):
        names[str(number % 1000)] = number
