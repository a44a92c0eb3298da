"""Counts requests, and repeats failed ones where that is safe and within the retry budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from pincompute.base.clock import Clock
from pincompute.base.retry_budget import RetryBudget
from pincompute.kube.errors import ApiError
from pincompute.kube.request import Request
from pincompute.kube.retry import retry_delay_s

RandomFraction = Callable[[], float]
"""Draws a random number from 0 to 1."""


class BaseTransport(Protocol):
    """Sends a request once and returns the bytes of the response."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(self, request: Request) -> bytes:
        """Sends the request and returns the whole response body."""
        ...

    def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """Yields the response line by line. Raises Unreachable after `silence` seconds without a byte."""
        ...


class RequestLabels(NamedTuple):
    """Labels by which requests are counted."""

    verb: str
    resource: str
    code: int
    """HTTP status; 0 if no response arrived."""


class RequestStats:
    """Counters of a client's requests."""

    def __init__(self) -> None:
        self.requests: Counter[RequestLabels] = Counter()
        self.received_bytes: Counter[str] = Counter()
        """Bytes of response bodies, by resource."""
        self.retries = 0


class TransportWrapper:
    """Base of transports that wrap another one and share its lifetime."""

    def __init__(self, inner: BaseTransport) -> None:
        self._inner = inner

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, trace)


class RetryingTransport(TransportWrapper):
    """Retries failed requests with backoff. Clock and random source are parameters, so that simulations repeat."""

    def __init__(self, inner: BaseTransport, clock: Clock, random: RandomFraction) -> None:
        super().__init__(inner)
        self.request_stats = RequestStats()
        self._clock = clock
        self._random = random
        self._budget = RetryBudget()

    async def send(self, request: Request) -> bytes:
        """Sends the request until it succeeds or a retry is not allowed, and returns the response body."""
        self._budget.earn()
        attempt = 0
        while True:
            attempt += 1
            try:
                body = await self._inner.send(request)
            except ApiError as error:
                self._count(request, error.status)
                await self._wait_or_raise(request, error, attempt)
            else:
                self._count(request, 200)
                self.request_stats.received_bytes[request.resource] += len(body)
                return body

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """Yields the response line by line. Once the first line has arrived, the request is not repeated."""
        self._budget.earn()
        attempt = 0
        while True:
            attempt += 1
            started = False
            try:
                async with aclosing(self._inner.lines(request, silence=silence)) as lines:
                    async for line in lines:
                        started = True
                        self.request_stats.received_bytes[request.resource] += len(line)
                        yield line
            except ApiError as error:
                self._count(request, error.status)
                if started:
                    raise
                await self._wait_or_raise(request, error, attempt)
            else:
                self._count(request, 200)
                return

    async def _wait_or_raise(self, request: Request, error: ApiError, attempt: int) -> None:
        delay_s = retry_delay_s(request, error, attempt, self._random())
        if delay_s is None or not self._budget.spend():
            raise error
        self.request_stats.retries += 1
        await self._clock.sleep(delay_s)

    def _count(self, request: Request, code: int) -> None:
        self.request_stats.requests[RequestLabels(request.verb, request.resource, code)] += 1
