"""Time that passes only when nobody has anything left to do: an hour takes none, and every run is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

BEGINNING = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


class Stuck(AssertionError):  # noqa: N818
    """Everybody waits for somebody else, for ever."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without sockets or threads, that goes to the next timer at once."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0
        # What the base asks for when nothing is ready; a real loop waits there for its sockets.
        self._selector = self
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._passed

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Stuck("nothing is left to happen")
        self._passed += max(0.0, timeout)
        return []

    def copied(self) -> None:
        """To be said in a copy of this process, which otherwise would not know that it is in this very loop."""
        asyncio._set_running_loop(self)  # noqa: SLF001  (it is there for those who make event loops)

    def _process_events(self, event_list: list[object]) -> None:
        """There are none: whoever is told something here is told by a call."""

    def _write_to_self(self) -> None:
        """There are no other threads that would have to wake this one."""


class VirtualClock:
    """The clock of all who live in a simulation."""

    def __init__(self) -> None:
        self.stood = 0.0
        """Seconds for which this machine stood still, and its clock did not."""
        self.ahead = 0.0
        """Seconds by which the time of day here is not everybody's."""
        self.back = 0.0
        """Seconds by which it was set back at most: for so long it waits longer."""

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=asyncio.get_running_loop().time() + self.ahead)

    def set(self, ahead: float) -> None:
        self.back = max(self.back, self.ahead - ahead)
        self.ahead = ahead

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.stood

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
