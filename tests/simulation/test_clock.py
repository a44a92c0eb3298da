"""Virtual time: it goes to the next timer at once, and says where nothing is left to happen."""

from __future__ import annotations

import asyncio
import time

import pytest
from simulation.clock import BEGINNING, Stuck, VirtualClock, run


def test_a_year_takes_no_time() -> None:
    async def wait() -> float:
        await asyncio.sleep(365 * 86_400)
        return (VirtualClock().now() - BEGINNING).total_seconds()

    began = time.monotonic()
    assert run(wait()) == 365 * 86_400
    assert time.monotonic() - began < 60


def test_timers_come_in_their_order() -> None:
    async def wait() -> list[int]:
        found: list[int] = []
        loop = asyncio.get_running_loop()
        for seconds in (3, 1, 2):
            loop.call_later(seconds, found.append, seconds)
        await asyncio.sleep(4)
        return found

    assert run(wait()) == [1, 2, 3]


def test_waiting_for_nobody_is_told() -> None:
    with pytest.raises(Stuck):
        run(asyncio.Event().wait())
