"""Delivers accepted submissions to their platform, in order for each workload, until each is carried out or refused.

The dispatcher runs on the leader. It gets each entry as soon as the entry is on disk, and reads from the outbox what a
former leader has left. If several desks share a database, it polls the outbox for what the others accept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import structlog

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL
from pincompute.desk.leadership import Leadership
from pincompute.desk.ledger_sync import LedgerSync
from pincompute.desk.store import outbox
from pincompute.desk.store.database import Database, TransactionBody
from pincompute.desk.store.outbox import OutboxEntry
from pincompute.desk.store.record import Submission
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import Delivery, Platform, PlatformUnavailable

_MAX_CONCURRENT_DELIVERIES = 8
_MAX_RETRY_DELAY_S = 5.0
_OUTBOX_POLL_INTERVAL_S = 0.25
"""For entries that other desks have accepted."""
_COMPLETION_POLL_INTERVAL_S = 0.1
"""For entries that another desk delivers."""
_MAX_FAILED_REQUESTS = 5
"""How often in a row a platform may fail at one entry, and only there, before that counts as a refusal."""

log = structlog.get_logger()

_ProjectAndName = tuple[str, str]
"""Identifies a workload: names are unique in a project over all kinds."""


class Dispatcher:
    """Delivers to one platform."""

    def __init__(
        self, database: Database, platform: Platform, ledger_sync: LedgerSync, clock: Clock, random: Callable[[], float]
    ) -> None:
        self._database = database
        self.platform = platform
        self._ledger_sync = ledger_sync
        self._clock = clock
        self._random = random
        self._queues: dict[_ProjectAndName, deque[OutboxEntry]] = {}
        """Entries that are not completed; the first of each queue is being delivered."""
        self._completions: dict[str, asyncio.Future[None]] = {}
        """By submission id, of all entries in the queues."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._delivery_slots = asyncio.Semaphore(_MAX_CONCURRENT_DELIVERIES)
        self._platform_responds = asyncio.Event()
        self._platform_responds.set()
        self.caught_up = asyncio.Event()
        """Set once everything that a former leader has left is in the queues."""
        self._leadership: Leadership | None = None
        self._dispatched = asyncio.Event()
        self._completed_while_reading: set[str] = set()

    async def run(self, leadership: Leadership) -> None:
        """The leader task: queues what was left in the outbox, then what arrives. Runs until cancelled."""
        self._leadership = leadership
        try:
            while True:
                self._dispatched.clear()
                while await self._read_outbox():
                    pass
                self.caught_up.set()
                await self._wait_for_entries()
        finally:
            self._leadership = None
            self.caught_up.clear()
            await self._cancel_deliveries()

    def dispatch(self, entry: OutboxEntry) -> None:
        """Takes over an entry that is on disk. On a desk that is not the leader, the leader finds it in the outbox."""
        if self._database.shared:
            # Another desk may have accepted an earlier entry for the same workload, so the outbox has the order.
            self._dispatched.set()
        elif self.caught_up.is_set():
            self._enqueue(entry)

    @property
    def pending_count(self) -> int:
        return len(self._completions)

    def nothing_pending_for(self, keys: Iterable[WorkloadKey]) -> bool:
        """True only if certainly no entry for these workloads is pending; with several desks only the outbox knows."""
        free = self._queues.keys().isdisjoint((key.project, key.name) for key in keys)
        return free and self.caught_up.is_set() and not self._database.shared

    async def wait_delivered(self, submission: str, timeout_s: float) -> None:
        """Returns when a submission is completed, or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not await self._database.transact(partial(outbox.is_completed, submission=submission)):
                    if completion := self._completions.get(submission):
                        await asyncio.wait([completion])
                        return
                    await asyncio.sleep(_COMPLETION_POLL_INTERVAL_S)

    async def _read_outbox(self) -> int:
        """Queues entries that are not queued yet; returns their number."""
        self._completed_while_reading.clear()
        queued = frozenset(self._completions)
        read = partial(outbox.undelivered_entries, cluster=self.platform.name, known=queued)
        found = await self._database.transact(read, slow=True)
        # What was completed or queued during the query is in its result, too.
        known = self._completed_while_reading | self._completions.keys()
        new = [each for each in found if each.submission.id not in known]
        for entry in new:
            self._enqueue(entry)
        return len(new)

    async def _wait_for_entries(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_OUTBOX_POLL_INTERVAL_S if self._database.shared else None):
                await self._dispatched.wait()

    async def _cancel_deliveries(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for completion in self._completions.values():
            completion.cancel()
        self._completions.clear()
        self._queues.clear()

    def _enqueue(self, entry: OutboxEntry) -> None:
        key = entry.submission.workload_key
        self._completions[entry.submission.id] = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault((key.project, key.name), deque())
        queue.append(entry)
        if len(queue) == 1:
            task = asyncio.create_task(self._work_off_queue((key.project, key.name), queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work_off_queue(self, workload: _ProjectAndName, queue: deque[OutboxEntry]) -> None:
        while queue:
            submission = queue[0].submission
            await self._deliver_until_completed(queue[0])
            self._completed_while_reading.add(submission.id)
            self._completions.pop(submission.id).set_result(None)
            queue.popleft()
        del self._queues[workload]

    async def _deliver_until_completed(self, entry: OutboxEntry) -> None:
        submission = entry.submission
        failures, failed_requests = 0, 0
        while True:
            responded = True
            await self._platform_responds.wait()
            try:
                async with self._delivery_slots:
                    delivery = await self._deliver(entry)
            except Refused as refused:
                await self._record_rejection(submission, refused)
                return
            except PlatformUnavailable as unavailable:
                problem = unavailable.problem
                responded = unavailable.responded
                failed_requests = failed_requests + 1 if unavailable.failed else 0
            except Exception:
                log.exception("delivery failed", submission=submission.id)
                problem = Problem(INTERNAL, "the desk failed to deliver the submission: see its log")
                failed_requests += 1
            else:
                await self._record_delivery(submission, delivery)
                return
            failures += 1
            if failed_requests == _MAX_FAILED_REQUESTS:
                await self._record_rejection(submission, Refused(problem))
                return
            attempt = partial(outbox.record_attempt, submission=submission.id, error=problem.what)
            await self._write_until_stored(attempt)
            await self._back_off(failures, no_response=not responded)

    async def _back_off(self, failures: int, *, no_response: bool) -> None:
        """Waits before the next attempt. While the platform does not respond, one delivery keeps trying for all."""
        if no_response and not self._platform_responds.is_set():
            return
        if no_response:
            self._platform_responds.clear()
        try:
            delay_s = min(_MAX_RETRY_DELAY_S, 0.1 * 2 ** min(failures, 10))
            await self._clock.sleep(delay_s * (0.5 + self._random() / 2))
        finally:
            self._platform_responds.set()

    async def _deliver(self, entry: OutboxEntry) -> Delivery:
        # While the leadership is in doubt, another desk may be delivering the same entry.
        while self._leadership is None or not self._leadership.is_held():
            await self._clock.sleep(_COMPLETION_POLL_INTERVAL_S)
        return await self.platform.deliver(entry.submission.id, entry.submission.workload_key, entry.command)

    async def _record_delivery(self, submission: Submission, delivery: Delivery) -> None:
        at = self._clock.now()
        await self._write_until_stored(lambda connection: outbox.record_delivery(connection, submission, at, delivery))
        if delivery.written_revision:
            self._ledger_sync.expect_write(submission.workload_key)

    async def _record_rejection(self, submission: Submission, refused: Refused) -> None:
        at = self._clock.now()
        await self._write_until_stored(lambda connection: outbox.record_rejection(connection, submission, at, refused))

    async def _write_until_stored(self, body: TransactionBody[None]) -> None:
        """Retries without limit: what the platform has done cannot be undone when the database does not respond."""
        while True:
            try:
                await self._database.transact(body)
            except Exception:
                log.exception("recording a delivery failed")
                await self._clock.sleep(_MAX_RETRY_DELAY_S)
            else:
                return
