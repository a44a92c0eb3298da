"""Makes coroutines wait for their turn in a fair queue, and turns rejections into 429 problems."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Self

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_BUSY, TOO_MANY_REQUESTS
from pincompute.desk.limits.fair_queue import FairQueue, QueueFull, QueueLimits, Ticket, TicketState
from pincompute.desk.limits.rate_limiter import RateLimiter

MAX_CACHED_PROBLEMS = 256
"""Rejections are the same for every client that one flood keeps out, so their text is built once."""


class Busy(Refused):
    """Rejected for now: the same request may succeed after `retry_after_s` seconds."""

    def __init__(self, problem: Problem, retry_after_s: int) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s


class RequestQueue:
    """A fair queue for coroutines. `what` names its requests in messages, in the plural."""

    def __init__(self, what: str, limits: QueueLimits, clock: Clock) -> None:
        self._what = what
        self._queue = FairQueue(limits)
        self._clock = clock
        self._waiters: dict[Ticket, asyncio.Future[None]] = {}

    @property
    def admitted_count(self) -> int:
        return self._queue.size

    @property
    def running(self) -> int:
        return self._queue.running

    def enter(self, client: str) -> Slot:
        """Reserves a slot, or raises Busy. Does not wait."""
        found = self._queue.enter(client)
        if isinstance(found, QueueFull):
            raise self._busy(found)
        if found.evicted:
            self._wake(found.evicted)
        return Slot(self, found.ticket)

    async def wait_turn(self, ticket: Ticket) -> None:
        """Waits until the ticket may run; raises Busy if it was evicted meanwhile."""
        if ticket.state is TicketState.ARRIVING:
            self._queue.mark_ready(ticket)
            self._start_next()
        if ticket.state is TicketState.WAITING:
            waiter = self._waiters[ticket] = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                del self._waiters[ticket]
        if ticket.state is TicketState.EVICTED:
            raise self._busy(self._queue.eviction_notice(ticket))

    def release(self, ticket: Ticket) -> None:
        self._queue.leave(ticket, self._clock.monotonic())
        self._start_next()

    def _start_next(self) -> None:
        for ticket in self._queue.start_next(self._clock.monotonic()):
            self._wake(ticket)

    def _wake(self, ticket: Ticket) -> None:
        waiter = self._waiters.get(ticket)
        if waiter and not waiter.done():
            waiter.set_result(None)

    def _busy(self, full: QueueFull) -> Busy:
        return Busy(_queue_full_problem(self._what, full), full.retry_after_s)


class Slot:
    """A request's slot in a queue; a context manager that releases it."""

    def __init__(self, queue: RequestQueue, ticket: Ticket) -> None:
        self._queue = queue
        self._ticket = ticket

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    async def wait_turn(self) -> None:
        await self._queue.wait_turn(self._ticket)

    def release(self) -> None:
        """Lets the next request run. Also called early, by a request that from then on only waits for delivery."""
        self._queue.release(self._ticket)


def enforce_rate(limiter: RateLimiter, client: str, now: float, what: str) -> None:
    """Raises Busy if the client is over its rate; `what` is the message."""
    if wait_s := limiter.wait_s(client, now):
        retry_after_s = int(wait_s) + 1
        raise Busy(Problem(TOO_MANY_REQUESTS, what, next=_retry_hint(retry_after_s)), retry_after_s)


@lru_cache(MAX_CACHED_PROBLEMS)
def _queue_full_problem(what: str, full: QueueFull) -> Problem:
    owner = "of yours " if full.own_limit else ""
    reason = TOO_MANY_REQUESTS if full.own_limit else DESK_BUSY
    message = f"the desk already has {full.occupied} {what} {owner}running or waiting, which is the limit"
    return Problem(reason, message, next=_retry_hint(full.retry_after_s))


def _retry_hint(seconds: int) -> str:
    return f"try again in {seconds} s"
