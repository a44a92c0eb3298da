"""Virtual time: an event loop that jumps to the next timer as soon as no task can run.

No real time passes while tasks wait, so an hour of retries takes milliseconds. And since nothing depends on the speed
of the machine, on sockets or on threads, the same inputs always give the same order of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

START_TIME = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
"""Time of day when the event loop's clock is at 0."""


class DeadlockError(AssertionError):
    """Every task waits, and no timer is left that could wake one."""


class VirtualEventLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and threads. Its clock advances only when all tasks wait."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        # The base class waits for I/O in `_selector.select(timeout)`, until the next timer is due. Being its own
        # selector, this loop advances its clock by the timeout instead.
        self._selector = self
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Called by the base class when no task can run; the timeout is None if there is no timer."""
        if timeout is None:
            raise DeadlockError("no task can run and no timer is left")
        self._now += max(0.0, timeout)
        return []

    def enter_forked_copy(self) -> None:
        """Must be called after a fork: asyncio compares the process id and takes the loop for one of the parent."""
        asyncio._set_running_loop(self)  # noqa: SLF001  (documented for implementations of event loops)

    def _process_events(self, event_list: list[object]) -> None:
        """There is no I/O, so no events occur."""

    def _write_to_self(self) -> None:
        """There are no other threads that could need to wake this loop."""


class VirtualClock:
    """The clocks of one simulated machine. They may differ from the event loop's clock, which is the true time."""

    def __init__(self) -> None:
        self.frozen_s = 0.0
        """Total time in which the machine was stalled while its monotonic clock went on."""
        self.offset_s = 0.0
        """Error of the machine's time of day."""
        self.max_set_back_s = 0.0
        """The most by which the time of day was ever set back: waits by time of day take that much longer."""

    def now(self) -> datetime:
        return START_TIME + timedelta(seconds=asyncio.get_running_loop().time() + self.offset_s)

    def set_offset(self, offset_s: float) -> None:
        self.max_set_back_s = max(self.max_set_back_s, self.offset_s - offset_s)
        self.offset_s = offset_s

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.frozen_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        return runner.run(work)
