"""Keys in, passes out: one pass a key at a time, again after a failure, and again when time alone could matter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from pincompute.base.problem import Refused


class Key(NamedTuple):
    """What is planned as one."""

    project: str
    """Empty for what belongs to none, such as a project itself."""
    name: str
    kind: str = ""
    """Empty for workloads: a name is one workload's in its project, over all kinds."""


Pass = Callable[[Key], Awaitable[float | None]]
"""Makes one key so; answers after how many seconds it should look again, if ever."""

REST = 0.05
"""Seconds between two passes of one key: a rollout of many pods is many events, and need not be as many passes."""
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 60.0

log = structlog.get_logger()


class Loop:
    """Who touches a key causes a pass, and touching it many times before the pass causes one."""

    def __init__(self, make_so: Pass, workers: int = 4) -> None:
        self._make_so = make_so
        self._workers = workers
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()
        self._busy: set[Key] = set()
        """In a pass, or at rest after one."""
        self._touched: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self.passes = 0

    def touch(self, key: Key) -> None:
        """Something about it has changed."""
        if key in self._busy:
            # Two passes of one key would fight; the second comes when the first is done.
            self._touched.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._queue.put_nowait(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._workers):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._waiting.discard(key)
            self._busy.add(key)
            self._cancel_timer(key)
            again = await self._one_pass(key)
            asyncio.get_running_loop().call_later(REST, self._rested, key, again)

    def _rested(self, key: Key, again: float | None) -> None:
        self._busy.discard(key)
        if key in self._touched:
            self._touched.discard(key)
            self.touch(key)
        elif again is not None:
            self._timers[key] = asyncio.get_running_loop().call_later(again, self.touch, key)

    async def _one_pass(self, key: Key) -> float | None:
        self.passes += 1
        try:
            again = await self._make_so(key)
        except Refused as refused:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            pause = min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)
            log.warning("pass failed", **key._asdict(), why=refused.text(), again_in=pause)
            return pause
        except Exception:
            # A fault of ours in one pass must not stop the others.
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            log.exception("pass broke", **key._asdict())
            return min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)
        self._failures.pop(key, None)
        return again

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
