"""Rate-limit middleware: admits or rejects a request by its caller, then lets it wait for its turn."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.admission.authorization import Permission
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import REQUEST_TIMEOUT
from pincompute.desk.http.auth import CALLER, required_permission
from pincompute.desk.http.endpoint import ResponseMode, endpoint_spec
from pincompute.desk.limits.fair_queue import QueueLimits
from pincompute.desk.limits.rate_limiter import RateLimiter
from pincompute.desk.limits.request_queue import RequestQueue, Slot, enforce_rate

BODY_TIMEOUT_S = 20.0
"""Time for a whole request body to arrive. A slow line sends the largest allowed body in less."""
BURST_SECONDS = 5.0
"""Seconds' worth of requests that a client may send at once."""
READS = QueueLimits(max_running=16, max_waiting=128, max_per_client=48)
WRITES = QueueLimits(max_running=16, max_waiting=128, max_per_client=48)
STREAMS = QueueLimits(max_running=2_000, max_waiting=0, max_per_client=200)
"""An open stream costs little, so streams are only counted and never wait."""


class Limits(NamedTuple):
    """The limits of one desk."""

    rate: float = 200.0
    """Requests per second of one client, over time; 0 means unlimited."""
    reads: QueueLimits = READS
    writes: QueueLimits = WRITES
    streams: QueueLimits = STREAMS


SLOT = web.RequestKey("slot", Slot)
BODY_BYTES: web.RequestKey[bytes | None] = web.RequestKey("body")
"""The request body; None if it was larger than the limit."""


class RequestLimiter:
    """The rate limiter and the queues of one desk."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._rate = limits.rate
        self._rate_limiter = RateLimiter(limits.rate, BURST_SECONDS)
        self._clock = clock
        self.reads = RequestQueue("read requests", limits.reads, clock)
        self.writes = RequestQueue("write requests", limits.writes, clock)
        self.streams = RequestQueue("streams", limits.streams, clock)

    def queue_for(self, request: web.Request) -> RequestQueue:
        if is_stream(request):
            return self.streams
        reads = request.method == "GET" or required_permission(request) is Permission.VIEW
        return self.reads if reads else self.writes

    def enter(self, client: str, queue: RequestQueue) -> Slot:
        """Reserves a slot for a client's request, or raises Busy. A request that the queue rejects is charged, too."""
        now = self._clock.monotonic()
        message = f"you send more than {self._rate:g} requests per second"
        enforce_rate(self._rate_limiter, client, now, message)
        self._rate_limiter.charge(client, now)
        return queue.enter(client)


REQUEST_LIMITER: web.AppKey[RequestLimiter] = web.AppKey("request_limiter")


def limit_middlewares(limiter: RequestLimiter) -> tuple[Middleware, Middleware]:
    """Two middlewares, to stand after authentication, as limits are per caller.

    The first rejects and costs next to nothing. The second reads the body and waits; it stands inside `shield_writes`,
    so that a write keeps its slot until it is done, also after its client has disconnected.
    """

    @web.middleware
    async def reject_or_admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        if caller := request.get(CALLER):
            request[SLOT] = limiter.enter(str(caller), limiter.queue_for(request))
        return await handler(request)

    @web.middleware
    async def wait_turn(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not (slot := request.get(SLOT)):
            return await handler(request)
        with slot:
            request[BODY_BYTES] = await _read_body(request) if request.can_read_body else b""
            await slot.wait_turn()
            if request.transport is None:
                # The client has disconnected while its request waited, and nothing has been done for it yet.
                return web.Response(status=499)
            return await handler(request)

    return reject_or_admit, wait_turn


def is_stream(request: web.Request) -> bool:
    spec = endpoint_spec(request.match_info.handler)
    return spec is not None and spec.mode in {ResponseMode.STREAM, ResponseMode.EVENTS, ResponseMode.WEBSOCKET}


async def _read_body(request: web.Request) -> bytes | None:
    """Reads the body before the request's turn: a slow sender delays only itself."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None
    except TimeoutError as error:
        what = f"the request body did not arrive within {BODY_TIMEOUT_S:g} seconds"
        raise Refused(Problem(REQUEST_TIMEOUT, what, next="send it faster, or send less")) from error
