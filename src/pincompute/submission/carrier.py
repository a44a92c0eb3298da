"""The carrier: takes to a platform what was accepted for it, in order for each workload, until it is there.

It is handed each parcel as soon as that is on record, and finds at its start what was left by the one before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import structlog

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL
from pincompute.submission import outbox
from pincompute.submission.bookkeeper import Bookkeeper
from pincompute.submission.database import Database
from pincompute.submission.outbox import Parcel
from pincompute.submission.platform import Away, Delivered, Platform
from pincompute.submission.record import Submission

AT_ONCE = 8
"""Parcels of different workloads."""
LONGEST = 5.0
"""Seconds between two attempts."""
OF_ONE = 5
"""How often a platform that is there may fail at one thing, before that counts as its answer."""

log = structlog.get_logger()

Workload = tuple[str, str]
"""Project and name: over all kinds, a name is one workload's."""


class Carrier:
    """Of one platform."""

    def __init__(
        self, database: Database, platform: Platform, books: Bookkeeper, clock: Clock, chance: Callable[[], float]
    ) -> None:
        self._database = database
        self.platform = platform
        self._books = books
        self._clock = clock
        self._chance = chance
        self._queues: dict[Workload, deque[Parcel]] = {}
        self._concluded: dict[str, asyncio.Future[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hands = asyncio.Semaphore(AT_ONCE)
        self._answers = asyncio.Event()
        self._answers.set()

    async def begin(self) -> None:
        """With what was accepted before and has not arrived."""
        for parcel in await self._database.do(partial(outbox.waiting, cluster=self.platform.name)):
            self.take(parcel)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self, parcel: Parcel) -> None:
        """It is on record; from now on it is on its way."""
        place = parcel.submission.place
        self._concluded[parcel.submission.id] = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault((place.project, place.name), deque())
        queue.append(parcel)
        if len(queue) == 1:
            task = asyncio.create_task(self._carry((place.project, place.name), queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def arrival(self, submission: str, seconds: float) -> None:
        """Return when it is known what became of it, or when that takes longer."""
        if concluded := self._concluded.get(submission):
            await asyncio.wait([concluded], timeout=seconds)

    async def _carry(self, workload: Workload, queue: deque[Parcel]) -> None:
        while queue:
            submission = queue[0].submission
            await self._one(queue[0])
            self._concluded.pop(submission.id).set_result(None)
            queue.popleft()
        del self._queues[workload]

    async def _one(self, parcel: Parcel) -> None:
        """Until it is delivered, or refused."""
        failures, answered = 0, 0
        while True:
            await self._answers.wait()
            try:
                async with self._hands:
                    await self._deliver(parcel)
            except Away as away:
                problem, answered = away.problem, answered + 1 if away.answered else 0
            except Exception:
                log.exception("a parcel could not be delivered", submission=parcel.submission.id)
                problem, answered = Problem(INTERNAL, "the desk failed at this; its log says more"), answered + 1
            else:
                return
            failures += 1
            if answered == OF_ONE:
                await self._returned(parcel.submission, Refused(problem))
                return
            await self._database.do(partial(outbox.tried, submission=parcel.submission.id, error=problem.what))
            await self._rest(failures, away=not answered)

    async def _rest(self, failures: int, *, away: bool) -> None:
        """Of all who find that nobody answers, one goes on asking."""
        if away and not self._answers.is_set():
            return
        if away:
            self._answers.clear()
        try:
            await self._clock.sleep(min(LONGEST, 0.1 * 2 ** min(failures, 10)) * (0.5 + self._chance() / 2))
        finally:
            self._answers.set()

    async def _deliver(self, parcel: Parcel) -> None:
        submission = parcel.submission
        try:
            found = await self.platform.deliver(submission.id, submission.place, parcel.order)
        except Refused as refused:
            await self._returned(submission, refused)
        else:
            await self._delivered(submission, found)

    async def _delivered(self, submission: Submission, found: Delivered) -> None:
        at = self._clock.now()
        await self._database.do(lambda connection: outbox.delivered(connection, submission, at, found))
        if found.written:
            self._books.expect(submission.place)

    async def _returned(self, submission: Submission, refused: Refused) -> None:
        at = self._clock.now()
        await self._database.do(lambda connection: outbox.returned(connection, submission, at, refused))
