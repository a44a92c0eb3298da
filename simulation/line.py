"""The line between a process and the API server: it takes time, and it is where faults happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Self

from pincompute.kube.errors import ApiError, Unreachable, error_of
from pincompute.kube.request import Request
from simulation.refusals import Refusal
from simulation.server import Cut, Server

TRIP = 0.002
"""Seconds each way."""
NEWS = 0.005
"""Seconds until a watch tells of what has happened."""


class Life:
    """One process, from its start to its end: what it has in its hands then never happens."""

    def __init__(self) -> None:
        self.over = False


class Line:
    """The transport of one process."""

    def __init__(self, server: Server, life: Life, faults: Faults | None = None) -> None:
        self._server = server
        self._life = life
        self._faults = faults or Faults()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(self, request: Request) -> bytes:
        await self._pass(TRIP, request)
        await self._faults.before(request)
        self._must_live()
        try:
            body = self._faults.instead(request) or self._server.answer(request)
            refused: ApiError | None = None
        except Refusal as refusal:
            body, refused = b"", error_of(refusal.body, status=refusal.code, about=request.about)
        await self._faults.after(request, refused)
        await self._pass(TRIP, request)
        self._faults.answered(request)
        if refused:
            raise refused
        return body

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        await self._pass(TRIP, request)
        await self._faults.before(request)
        if other := self._faults.instead(request):
            yield other
            return
        try:
            async with aclosing(self._server.follow(request)) as told:
                async for at, line in told:
                    late = at + await self._faults.news(request) - asyncio.get_running_loop().time()
                    await self._pass(max(0.0, late), request)
                    yield line
                    if self._faults.again(request):
                        yield line
        except Refusal as refusal:
            raise error_of(refusal.body, status=refusal.code, about=request.about) from refusal
        except Cut as cut:
            raise lost(request) from cut

    async def _pass(self, seconds: float, request: Request) -> None:
        del request
        self._must_live()
        if seconds:
            await asyncio.sleep(seconds)
        self._must_live()

    def _must_live(self) -> None:
        if self._life.over:
            raise asyncio.CancelledError


class Faults:
    """None at all: what goes wrong is said by those who inherit from it."""

    whole = False
    """Whether the operator's lease is concerned as well."""

    async def before(self, request: Request) -> None:
        """It has left, and was not heard yet."""

    def instead(self, request: Request) -> bytes | None:
        """What somebody else answers in the server's place."""

    async def after(self, request: Request, refused: ApiError | None) -> None:
        """It was heard and is done, or was refused; the answer has not left."""

    def answered(self, request: Request) -> None:
        """The answer is there."""

    async def news(self, request: Request) -> float:
        """Seconds until a watch tells of something; raises where the stream breaks instead."""
        return NEWS

    def again(self, request: Request) -> bool:
        """Whether a watch tells of it once more."""
        return False


def lost(request: Request) -> ApiError:
    return Unreachable("https://simulated", "the connection was lost", about=request.about)
