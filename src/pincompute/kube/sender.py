"""The sender: hands requests to a transport, counts them, and sends once more what is safe and may help."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from pincompute.base.budget import Budget
from pincompute.base.clock import Clock
from pincompute.kube.errors import ApiError
from pincompute.kube.request import Request
from pincompute.kube.retry import pause

Chance = Callable[[], float]
"""Draws from 0 to 1."""


class Carrier(Protocol):
    """What a sender needs of a transport: bytes go in and come out, once."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(self, request: Request) -> bytes:
        """The whole answer."""
        ...

    def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """An answer line by line, as it comes; given up after so many seconds of silence."""
        ...


class Asked(NamedTuple):
    """How requests are counted."""

    verb: str
    resource: str
    code: int
    """0 where no answer came."""


class Traffic:
    """What was asked of the API server so far."""

    def __init__(self) -> None:
        self.requests: Counter[Asked] = Counter()
        self.received: Counter[str] = Counter()
        """Bytes by resource."""
        self.retries = 0


class Front:
    """What stands in front of a carrier, and comes and goes with it."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    async def __aenter__(self) -> Self:
        await self._carrier.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._carrier.__aexit__(kind, error, trace)


class Sender(Front):
    """Chance and the clock are handed in, so that a simulated run is the same each time."""

    def __init__(self, carrier: Carrier, clock: Clock, chance: Chance) -> None:
        super().__init__(carrier)
        self.traffic = Traffic()
        self._clock = clock
        self._chance = chance
        self._budget = Budget()

    async def send(self, request: Request) -> bytes:
        """The whole answer."""
        self._budget.earn()
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await self._carrier.send(request)
            except ApiError as error:
                self._count(request, error.status)
                await self._wait_or_raise(request, error, attempt)
            else:
                self._count(request, 200)
                self.traffic.received[request.resource] += len(answer)
                return answer

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """An answer line by line, as it comes; once it has begun it is not asked for again."""
        self._budget.earn()
        attempt = 0
        while True:
            attempt += 1
            begun = False
            try:
                async with aclosing(self._carrier.lines(request, silence=silence)) as lines:
                    async for line in lines:
                        begun = True
                        self.traffic.received[request.resource] += len(line)
                        yield line
            except ApiError as error:
                self._count(request, error.status)
                if begun:
                    raise
                await self._wait_or_raise(request, error, attempt)
            else:
                self._count(request, 200)
                return

    async def _wait_or_raise(self, request: Request, error: ApiError, attempt: int) -> None:
        wait = pause(request, error, attempt, self._chance())
        if wait is None or not self._budget.spend():
            raise error
        self.traffic.retries += 1
        await self._clock.sleep(wait)

    def _count(self, request: Request, code: int) -> None:
        self.traffic.requests[Asked(request.verb, request.resource, code)] += 1
