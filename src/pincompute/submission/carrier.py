"""The carrier: takes to a platform what was accepted for it, in order for each workload, until it is there.

It is handed each parcel as soon as that is on record, and finds when its shift begins what was left by the one before
it. Where several desks have one record, it looks for what the others have accepted.
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
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import outbox
from pincompute.submission.bookkeeper import Bookkeeper
from pincompute.submission.database import Database, Work
from pincompute.submission.outbox import Parcel
from pincompute.submission.platform import Away, Delivered, Platform
from pincompute.submission.record import Submission
from pincompute.submission.shift import Shift

AT_ONCE = 8
"""Parcels of different workloads."""
LONGEST = 5.0
"""Seconds between two attempts."""
LOOK = 0.25
"""Seconds between two looks at what other desks have accepted."""
ELSEWHERE = 0.1
"""Seconds between two looks at what another desk made of a submission."""
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
        self.begun = asyncio.Event()
        """What was left by the one before is in hand."""
        self._shift: Shift | None = None
        self._handed = asyncio.Event()
        self._meanwhile: set[str] = set()

    async def run(self, shift: Shift) -> None:
        """For a shift: with what was left before, and then with what is handed over and what others accept."""
        self._shift = shift
        try:
            while True:
                self._handed.clear()
                while await self._look():
                    pass
                self.begun.set()
                await self._wait()
        finally:
            self._shift = None
            self.begun.clear()
            await self._end()

    def take(self, parcel: Parcel) -> None:
        """It is on record; from now on it is on its way, by whoever has the shift."""
        if self._database.shared:
            # Another may have accepted something before this one.
            self._handed.set()
        elif self.begun.is_set():
            self._enqueue(parcel)

    @property
    def in_hand(self) -> int:
        return len(self._concluded)

    def is_free_of(self, places: Iterable[Place]) -> bool:
        """Certainly nothing is on its way to any of these; where several desks accept, only the record knows that."""
        free = self._queues.keys().isdisjoint((each.project, each.name) for each in places)
        return free and self.begun.is_set() and not self._database.shared

    async def arrival(self, submission: str, seconds: float) -> None:
        """Return when it is known what became of it, or when that takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not await self._database.do(partial(outbox.concluded, submission=submission)):
                    if concluded := self._concluded.get(submission):
                        await asyncio.wait([concluded])
                        return
                    await asyncio.sleep(ELSEWHERE)

    async def _look(self) -> int:
        """What is not in hand by now, and was not meanwhile; how much that was."""
        self._meanwhile.clear()
        in_hand = frozenset(self._concluded)
        waiting = partial(outbox.waiting, cluster=self.platform.name, known=in_hand)
        found = await self._database.do(waiting, long=True)
        known = self._meanwhile | self._concluded.keys()
        new = [each for each in found if each.submission.id not in known]
        for parcel in new:
            self._enqueue(parcel)
        return len(new)

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK if self._database.shared else None):
                await self._handed.wait()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for concluded in self._concluded.values():
            concluded.cancel()
        self._concluded.clear()
        self._queues.clear()

    def _enqueue(self, parcel: Parcel) -> None:
        place = parcel.submission.place
        self._concluded[parcel.submission.id] = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault((place.project, place.name), deque())
        queue.append(parcel)
        if len(queue) == 1:
            task = asyncio.create_task(self._carry((place.project, place.name), queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, workload: Workload, queue: deque[Parcel]) -> None:
        while queue:
            submission = queue[0].submission
            await self._one(queue[0])
            self._meanwhile.add(submission.id)
            self._concluded.pop(submission.id).set_result(None)
            queue.popleft()
        del self._queues[workload]

    async def _one(self, parcel: Parcel) -> None:
        """Until it is delivered, or refused."""
        submission = parcel.submission
        failures, answered = 0, 0
        while True:
            await self._answers.wait()
            try:
                async with self._hands:
                    found = await self._deliver(parcel)
            except Refused as refused:
                await self._returned(submission, refused)
                return
            except Away as away:
                problem, answered = away.problem, answered + 1 if away.answered else 0
            except Exception:
                log.exception("a parcel could not be delivered", submission=submission.id)
                problem, answered = Problem(INTERNAL, "the desk failed at this; its log says more"), answered + 1
            else:
                await self._delivered(submission, found)
                return
            failures += 1
            if answered == OF_ONE:
                await self._returned(submission, Refused(problem))
                return
            await self._note(partial(outbox.tried, submission=submission.id, error=problem.what))
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

    async def _deliver(self, parcel: Parcel) -> Delivered:
        while self._shift is None or not self._shift.certain():
            await self._clock.sleep(ELSEWHERE)
        return await self.platform.deliver(parcel.submission.id, parcel.submission.place, parcel.order)

    async def _delivered(self, submission: Submission, found: Delivered) -> None:
        at = self._clock.now()
        await self._note(lambda connection: outbox.delivered(connection, submission, at, found))
        if found.written:
            self._books.expect(submission.place)

    async def _returned(self, submission: Submission, refused: Refused) -> None:
        at = self._clock.now()
        await self._note(lambda connection: outbox.returned(connection, submission, at, refused))

    async def _note(self, work: Work[None]) -> None:
        """However long that takes: what the platform did is not undone by a record that cannot be written."""
        while True:
            try:
                await self._database.do(work)
            except Exception:
                log.exception("what became of a submission could not be noted")
                await self._clock.sleep(LONGEST)
            else:
                return
