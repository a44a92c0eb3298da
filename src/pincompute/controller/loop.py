"""Keys in, passes out: one pass a key at a time, again after a failure, and again when time alone could matter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pincompute.base.clock import Clock, SystemClock
from pincompute.base.pause import backoff
from pincompute.base.problem import Refused
from pincompute.controller.passes import RETRIED, Cause, Key, Made, Outcome
from pincompute.controller.queue import Queue
from pincompute.controller.story import Passed, Story
from pincompute.controller.tally import Tally

Pass = Callable[[Key], Awaitable[Made]]
"""Makes one key so."""

REST = 0.05
"""Seconds between two passes of one key: a rollout of many pods is many events, and need not be as many passes."""
LONGEST_PAUSE = 60.0
WORKERS = 16
"""Passes side by side. Most of a pass is waiting for the API server: with four, a roll over 100 workloads stood in line
for as long as the slowest answers took."""

log = structlog.get_logger()


class Loop:
    """Who touches a key causes a pass, and touching it many times before the pass causes one."""

    def __init__(
        self,
        make_so: Pass,
        workers: int = WORKERS,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = lambda: 1.0,
        age: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._make_so = make_so
        self._workers = workers
        self._clock = clock or SystemClock()
        self._chance = chance
        self._age = age
        """How old the picture is that a pass goes by."""
        self._queue = Queue()
        self._some = asyncio.Event()
        """Somebody waits, or the end is near."""
        self._ending = False
        self._causes: dict[Key, dict[Cause, None]] = {}
        """Why each key is to be looked at, whether it waits already or its pass is still under way."""
        self._busy: set[Key] = set()
        """In a pass, or at rest after one."""
        self._under_way: dict[Key, float] = {}
        """When each pass began."""
        self._failures: dict[Key, tuple[int, str]] = {}
        """How many passes in a row did not succeed, and why the last did not."""
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._moved = self._clock.monotonic()
        self.story = Story()
        self.tally = Tally()

    @property
    def passes(self) -> int:
        return self.tally.made

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def failing(self) -> int:
        """Keys whose last pass did not succeed."""
        return len(self._failures)

    def stuck(self) -> float:
        """Seconds for which somebody has waited, or was in a pass, and no pass has ended; 0 where all is well."""
        if not self._queue and not self._under_way:
            return 0.0
        return self._clock.monotonic() - self._moved

    def touch(self, key: Key, cause: Cause = Cause.SEEN) -> None:
        """Something about it has changed."""
        self._causes.setdefault(key, {})[cause] = None
        # Two passes of one key would fight: while it is busy its causes wait, and the next comes when that one is done.
        if key not in self._busy:
            self._put(key)

    async def run(self) -> None:
        """Until it is told to finish; what is under way when this is cancelled is made by whoever runs it next."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._workers):
                    workers.create_task(self._work())
        finally:
            for key in list(self._under_way):
                del self._under_way[key]
                self._busy.discard(key)
                self.touch(key, Cause.AGAIN)

    def finish(self) -> None:
        """End when the passes are done that are under way; nobody's turn comes any more."""
        self._ending = True
        self._some.set()

    async def _work(self) -> None:
        while not self._ending:
            key = self._queue.take()
            if key is None:
                self._some.clear()
                await self._some.wait()
                continue
            causes = tuple(self._causes.pop(key, ()))
            self._busy.add(key)
            self._cancel_timer(key)
            again = await self._one_pass(key, causes)
            asyncio.get_running_loop().call_later(REST, self._rested, key, again)
            # A pass that finds all as wanted never waits: without this, nobody is heard while thousands of them go by.
            await asyncio.sleep(0)

    def _rested(self, key: Key, again: float | None) -> None:
        self._busy.discard(key)
        if key in self._causes:
            self._put(key)
        elif again is not None:
            cause = Cause.AGAIN if key in self._failures else Cause.DUE
            self._timers[key] = asyncio.get_running_loop().call_later(again, self.touch, key, cause)

    async def _one_pass(self, key: Key, causes: tuple[Cause, ...]) -> float | None:
        began = self._under_way[key] = self._clock.monotonic()
        at, age = self._clock.now(), self._age()
        try:
            made = await self._make_so(key)
        except Refused as refused:
            made = Made(Outcome.REFUSED, why=refused.text())
        except Exception as error:
            # A fault of ours in one pass must not stop the others.
            made = Made(Outcome.BROKE, why=f"{type(error).__name__}: see the log")
            log.exception("pass broke", **key._asdict())
        del self._under_way[key]
        self._moved = self._clock.monotonic()
        seconds = self._moved - began
        self.tally.add(key, made, seconds)
        words = tuple(each.words for each in causes)
        self.story.add(key, Passed(at, words, age, made.steps, made.why, made.outcome, seconds))
        return self._again(key, made)

    def _again(self, key: Key, made: Made) -> float | None:
        if made.outcome not in RETRIED:
            if self._failures.pop(key, None):
                log.info("pass succeeds again", **key._asdict())
            return made.again
        failures, before = self._failures.get(key, (0, ""))
        self._failures[key] = failures + 1, made.why
        # Said once: a cluster that is down would fill the log with what is known.
        if made.outcome is Outcome.REFUSED and made.why != before:
            log.warning("pass failed", **key._asdict(), why=made.why)
        return backoff(failures + 1, self._chance(), LONGEST_PAUSE)

    def _put(self, key: Key) -> None:
        if not self._queue and not self._under_way:
            # Nobody waited: it stood still with good reason.
            self._moved = self._clock.monotonic()
        self._queue.put(key, min(each.level for each in self._causes[key]))
        self._some.set()

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
