"""Schedules passes: takes keys from a work queue and runs one pass per key at a time on a few workers.

The loop is level-triggered. An event does not say what to do; it only says that a key should be reconciled, and many
events for one key before its pass are one pass. After a pass, the loop waits for further events, unless

- the pass failed: the key is retried with exponential backoff,
- the plan asked to be woken: a timer enqueues the key (`requeue_after_s`),
- events arrived during the pass: the key is enqueued once more, after a short minimum interval.

Cancelling `run` at any moment is safe. Keys with an interrupted pass are enqueued again, so that the next run
of the loop reconciles them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pincompute.base.backoff import backoff_s
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Refused
from pincompute.controller.counters import LoopCounters
from pincompute.controller.pass_history import PassHistory, PassRecord
from pincompute.controller.passes import RETRIED_OUTCOMES, Key, Outcome, PassResult, Trigger
from pincompute.controller.work_queue import WorkQueue

PassFunction = Callable[[Key], Awaitable[PassResult]]
"""Reconciles one key."""

MIN_PASS_INTERVAL_S = 0.05
"""Minimum time between two passes of one key: the many events of a rollout need not cause as many passes."""
MAX_BACKOFF_S = 60.0
WORKERS = 16
"""Concurrent passes. Most of a pass is waiting for the API server: with four workers, a roll over 100 workloads was as
slow as the slowest responses."""

log = structlog.get_logger()


class ReconcileLoop:
    """Runs passes for enqueued keys and keeps their history and counters."""

    def __init__(
        self,
        reconcile: PassFunction,
        workers: int = WORKERS,
        *,
        clock: Clock | None = None,
        random: Callable[[], float] = lambda: 1.0,
        cache_age_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._reconcile = reconcile
        self._workers = workers
        self._clock = clock or SystemClock()
        self._random = random
        self._cache_age_s = cache_age_s
        self._queue = WorkQueue()
        self._wake_workers = asyncio.Event()
        """Set when a key was enqueued or the loop is shutting down."""
        self._turns = asyncio.Lock()
        self._shutting_down = False
        self._triggers: dict[Key, dict[Trigger, None]] = {}
        """Why each key is to be reconciled, whether it is queued or its pass still runs; in order."""
        self._busy: set[Key] = set()
        """Keys in a pass, or in the minimum interval after one."""
        self._running_since: dict[Key, float] = {}
        """Start of each pass that is running."""
        self._failures: dict[Key, tuple[int, str]] = {}
        """Consecutive failed passes of a key, and the reason of the last one."""
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._last_progress = self._clock.monotonic()
        """When a pass last ended, or the queue was last empty."""
        self.history = PassHistory()
        self.counters = LoopCounters()

    @property
    def pass_count(self) -> int:
        return self.counters.total_passes

    @property
    def queue_length(self) -> int:
        return len(self._queue)

    @property
    def failing_count(self) -> int:
        """Number of keys with a failed last pass."""
        return len(self._failures)

    def stalled_for_s(self) -> float:
        """Seconds since the last progress while keys wait or passes run; 0 for an idle loop."""
        if not self._queue and not self._running_since:
            return 0.0
        return self._clock.monotonic() - self._last_progress

    def enqueue(self, key: Key, trigger: Trigger = Trigger.OBJECT_CHANGED) -> None:
        """Requests a pass of a key. Requests that arrive before the pass starts are merged into one."""
        self._triggers.setdefault(key, {})[trigger] = None
        # Two concurrent passes of one key would overwrite each other's decisions. While the key is busy its triggers
        # are only collected; the next pass starts when the present one is done.
        if key not in self._busy:
            self._add_to_queue(key)

    async def run(self) -> None:
        """Runs until `shut_down`. If it is cancelled, interrupted keys are enqueued for the next run."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._workers):
                    workers.create_task(self._run_worker())
        finally:
            for key in list(self._running_since):
                del self._running_since[key]
                self._busy.discard(key)
                self.enqueue(key, Trigger.RETRY)

    def shut_down(self) -> None:
        """Lets running passes end and starts no further one."""
        self._shutting_down = True
        self._wake_workers.set()

    async def _run_worker(self) -> None:
        while not self._shutting_down:
            await self._wait_for_turn()
            key = self._queue.take()
            if key is None:
                self._wake_workers.clear()
                await self._wake_workers.wait()
                continue
            triggers = tuple(self._triggers.pop(key, ()))
            self._busy.add(key)
            self._cancel_timer(key)
            requeue_after_s = await self._run_pass(key, triggers)
            asyncio.get_running_loop().call_later(MIN_PASS_INTERVAL_S, self._end_interval, key, requeue_after_s)

    async def _wait_for_turn(self) -> None:
        """Lets one worker go on in each iteration of the event loop.

        A pass that changes nothing never awaits I/O. Without turns, one such pass of every worker would follow another
        before the next watch event is read, and thousands of them before a lease is renewed.
        """
        async with self._turns:
            await asyncio.sleep(0)

    def _end_interval(self, key: Key, requeue_after_s: float | None) -> None:
        self._busy.discard(key)
        if key in self._triggers:
            self._add_to_queue(key)
        elif requeue_after_s is not None:
            trigger = Trigger.RETRY if key in self._failures else Trigger.TIMER
            self._timers[key] = asyncio.get_running_loop().call_later(requeue_after_s, self.enqueue, key, trigger)

    async def _run_pass(self, key: Key, triggers: tuple[Trigger, ...]) -> float | None:
        """Runs and records one pass; returns after how many seconds the key is to be reconciled again."""
        began = self._running_since[key] = self._clock.monotonic()
        at, cache_age_s = self._clock.now(), self._cache_age_s()
        try:
            result = await self._reconcile(key)
        except Refused as refused:
            result = PassResult(Outcome.FAILED, why=refused.text())
        except Exception as error:
            # A bug that one key runs into must not stop the other keys.
            result = PassResult(Outcome.PANICKED, why=f"{type(error).__name__}: see the log")
            log.exception("reconcile panicked", **key._asdict())
        del self._running_since[key]
        self._last_progress = self._clock.monotonic()
        duration_s = self._last_progress - began
        self.counters.add(key, result, duration_s)
        descriptions = tuple(each.description for each in triggers)
        self.history.add(
            key, PassRecord(at, descriptions, cache_age_s, result.steps, result.why, result.outcome, duration_s)
        )
        return self._requeue_delay_s(key, result)

    def _requeue_delay_s(self, key: Key, result: PassResult) -> float | None:
        if result.outcome not in RETRIED_OUTCOMES:
            if self._failures.pop(key, None):
                log.info("reconcile recovered", **key._asdict())
            return result.requeue_after_s
        failures, last_reason = self._failures.get(key, (0, ""))
        self._failures[key] = failures + 1, result.why
        # Logged only when the reason changes: an API server that is down would fill the log with one line per retry.
        if result.outcome is Outcome.FAILED and result.why != last_reason:
            log.warning("reconcile failed", **key._asdict(), why=result.why)
        return backoff_s(failures + 1, self._random(), MAX_BACKOFF_S)

    def _add_to_queue(self, key: Key) -> None:
        if not self._queue and not self._running_since:
            # The loop was idle until now, which is no stall.
            self._last_progress = self._clock.monotonic()
        self._queue.put(key, min(each.priority for each in self._triggers[key]))
        self._wake_workers.set()

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
