"""Virtual time: the loop jumps to the next timer, and reports a deadlock if there is none."""

from __future__ import annotations

import asyncio
import time

import pytest
from simulation.clock import START_TIME, DeadlockError, VirtualClock, run_in_virtual_time

ONE_YEAR_S = 365 * 86_400


def test_sleeping_a_year_takes_no_real_time() -> None:
    async def sleep() -> float:
        await asyncio.sleep(ONE_YEAR_S)
        return (VirtualClock().now() - START_TIME).total_seconds()

    began = time.monotonic()
    assert run_in_virtual_time(sleep()) == ONE_YEAR_S
    assert time.monotonic() - began < 60


def test_timers_fire_in_order() -> None:
    async def record_timers() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for seconds in (3, 1, 2):
            loop.call_later(seconds, fired.append, seconds)
        await asyncio.sleep(4)
        return fired

    assert run_in_virtual_time(record_timers()) == [1, 2, 3]


def test_wait_without_timer_is_a_deadlock() -> None:
    with pytest.raises(DeadlockError):
        run_in_virtual_time(asyncio.Event().wait())
