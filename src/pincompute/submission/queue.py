"""A queue before a lane: whoever comes is let in or sent away at once, and begins when it is their turn."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Self

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DESK_BUSY, TOO_MANY_REQUESTS
from pincompute.planning.lane import Bounds, Full, Lane, State, Ticket
from pincompute.planning.pace import Pace

KEPT = 256
"""Words that many were told of late: they are the same for everybody whom one flood keeps out."""


class Busy(Refused):
    """Not now."""

    def __init__(self, problem: Problem, seconds: int) -> None:
        super().__init__(problem)
        self.seconds = seconds


class Queue:
    """Before one lane."""

    def __init__(self, what: str, bounds: Bounds, clock: Clock) -> None:
        self._what = what
        self._lane = Lane(bounds)
        self._clock = clock
        self._begun: dict[Ticket, asyncio.Future[None]] = {}

    def ask(self, client: str) -> None:
        """Go on where there is room."""
        if full := self._lane.full(client):
            raise self._busy(full)

    def come(self, client: str) -> Place:
        """Room, or the word that there is none."""
        found = self._lane.come(client)
        if isinstance(found, Full):
            raise self._busy(found)
        if found.instead and (waits := self._begun.get(found.instead)) and not waits.done():
            waits.set_result(None)
        return Place(self, found.ticket)

    async def turn(self, ticket: Ticket) -> None:
        if ticket.state is State.COMING:
            self._lane.ready(ticket)
            self._begin()
        if ticket.state is State.WAITING:
            begun = self._begun[ticket] = asyncio.get_running_loop().create_future()
            try:
                await begun
            finally:
                del self._begun[ticket]
        if ticket.state is State.OUT:
            raise self._busy(self._lane.out(ticket))

    def leave(self, ticket: Ticket) -> None:
        self._lane.leave(ticket, self._clock.monotonic())
        self._begin()

    def _busy(self, full: Full) -> Busy:
        return Busy(_full(self._what, full), full.seconds)

    def _begin(self) -> None:
        for ticket in self._lane.begin(self._clock.monotonic()):
            if (begun := self._begun.get(ticket)) and not begun.done():
                begun.set_result(None)


class Place:
    """Somebody's, for as long as they are in here."""

    def __init__(self, queue: Queue, ticket: Ticket) -> None:
        self._queue = queue
        self._ticket = ticket

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    async def turn(self) -> None:
        """Return when it is theirs."""
        await self._queue.turn(self._ticket)

    def leave(self) -> None:
        """For whoever is next, also before the end: who only waits for others takes nobody's place."""
        self._queue.leave(self._ticket)


def keep_pace(pace: Pace, client: str, now: float, what: str) -> None:
    """Go on where they may."""
    if wait := pace.wait(client, now):
        seconds = int(wait) + 1
        raise Busy(Problem(TOO_MANY_REQUESTS, what, next=_again(seconds)), seconds)


@lru_cache(KEPT)
def _full(what: str, found: Full) -> Problem:
    whose = "of yours are" if found.own else "are"
    told = f"{found.there} {what} {whose} waiting or at work here, and that is as many as may be"
    return Problem(TOO_MANY_REQUESTS if found.own else DESK_BUSY, told, next=_again(found.seconds))


def _again(seconds: int) -> str:
    return f"try again in {seconds} s"
