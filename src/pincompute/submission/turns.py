"""Turns: how much the desk does at one time, and for whom next. What is too much is turned away before it costs much.

Reads, writes and streams have a lane each, so that none of them waits behind another.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import REQUEST_SLOW
from pincompute.planning.lane import Bounds
from pincompute.planning.pace import Pace
from pincompute.planning.rights import Verb
from pincompute.submission.doorstep import Doorstep, Knock
from pincompute.submission.guards import WHO, needed
from pincompute.submission.queue import Busy, Place, Queue, keep_pace
from pincompute.submission.speech import Manner, speech_of

BODY_SECONDS = 20.0
"""Within which all of a request has been sent; the largest there may be takes a slow line less."""
AT_ONCE = 5.0
"""Seconds' worth of requests that somebody may send at once."""
READS = Bounds(at_work=16, waiting=128, of_one=48)
WRITES = Bounds(at_work=16, waiting=128, of_one=48)
STREAMS = Bounds(at_work=2_000, waiting=0, of_one=200)
"""They take little once they have begun, so that they are counted and do not wait."""


class Limits(NamedTuple):
    """Of one desk."""

    rate: float = 200.0
    """Requests a second of one client, over time; 0 bounds nobody."""
    reads: Bounds = READS
    writes: Bounds = WRITES
    streams: Bounds = STREAMS


PLACE = web.RequestKey("place", Place)
BODY: web.RequestKey[bytes | None] = web.RequestKey("body")
"""All that was sent; None where that was too much."""


class Room:
    """Whether there is any for somebody, and before which lane."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._rate = limits.rate
        self._pace = Pace(limits.rate, AT_ONCE)
        self._clock = clock
        self._reads = Queue("requests that look", limits.reads, clock)
        self._writes = Queue("requests that change something", limits.writes, clock)
        self._streams = Queue("streams", limits.streams, clock)

    def queue(self, request: web.Request) -> Queue:
        if streamed(request):
            return self._streams
        return self._reads if request.method == "GET" or needed(request) is Verb.LOOK else self._writes

    def come(self, name: str, queue: Queue) -> Place:
        self._pace.take(name, self._kept_pace(name))
        return queue.come(name)

    def ask(self, name: str, queue: Queue) -> None:
        """Go on where they may come; who may not has asked all the same."""
        now = self._kept_pace(name)
        try:
            queue.ask(name)
        except Busy:
            self._pace.take(name, now)
            raise

    def _kept_pace(self, name: str) -> float:
        """What time it is, where they keep it."""
        now = self._clock.monotonic()
        keep_pace(self._pace, name, now, f"you ask more often than {self._rate:g} times a second")
        return now


def turns(limits: Limits, clock: Clock, doorstep: Doorstep) -> tuple[Middleware, Middleware]:
    """After it is known who asks: by their names it is fair. First whether there is room for them, which costs next to
    nothing; then, where they have it, their turn."""
    room = Room(limits, clock)

    @web.middleware
    async def let_in(request: web.Request, handler: Handler) -> web.StreamResponse:
        if who := request.get(WHO):
            name, queue = str(who), room.queue(request)
            try:
                request[PLACE] = room.come(name, queue)
            except Busy:
                doorstep.remember(_knock(request), partial(room.ask, name, queue))
                raise
        return await handler(request)

    @web.middleware
    async def in_turn(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not (place := request.get(PLACE)):
            return await handler(request)
        with place:
            request[BODY] = await _read(request) if request.can_read_body else b""
            await place.turn()
            if request.transport is None:
                # Nobody waits for it any more, and nothing has begun.
                return web.Response(status=499)
            return await handler(request)

    return let_in, in_turn


def _knock(request: web.Request) -> Knock:
    """As it was heard, to the byte."""
    shows = request.headers.get("Authorization", "")
    return Knock(f"{request.method} {request.raw_path}".encode(), shows.encode() if shows.isascii() else b"")


def streamed(request: web.Request) -> bool:
    speech = speech_of(request.match_info.handler)
    return speech is not None and speech.manner in {Manner.LINES, Manner.CARRIED}


async def _read(request: web.Request) -> bytes | None:
    """Before it is its turn: whoever sends slowly holds up nobody but themselves."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None
    except TimeoutError as error:
        what = f"what was sent did not end within {BODY_SECONDS:g} seconds"
        raise Refused(Problem(REQUEST_SLOW, what, next="send it faster, or less of it")) from error
