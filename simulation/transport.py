"""The network between a process and the simulated API server: adds delays, and calls the hooks that inject faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Self

from pincompute.kube.errors import ApiError, Unreachable, parse_error
from pincompute.kube.request import Request
from simulation.api_errors import ApiRefusal
from simulation.api_server import SimulatedApiServer, WatchCut

NETWORK_DELAY_S = 0.002
"""Delay of a request, and of its response."""
WATCH_DELAY_S = 0.005
"""Delay of a watch event."""


class SimulatedProcess:
    """One operator process. After it was killed, none of its requests reaches the server."""

    def __init__(self) -> None:
        self.killed = False


class SimulatedTransport:
    """The transport of one process."""

    def __init__(self, server: SimulatedApiServer, process: SimulatedProcess, faults: FaultHooks | None = None) -> None:
        self._server = server
        self._process = process
        self._faults = faults or FaultHooks()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(self, request: Request) -> bytes:
        await self._delay(NETWORK_DELAY_S, request)
        await self._faults.before_request(request)
        self._raise_if_killed()
        try:
            body = self._faults.foreign_response(request) or self._server.answer(request)
            refused: ApiError | None = None
        except ApiRefusal as refusal:
            body, refused = b"", parse_error(refusal.body, status=refusal.code, about=request.about)
        await self._faults.after_request(request, refused)
        await self._delay(NETWORK_DELAY_S, request)
        self._faults.response_received(request)
        if refused:
            raise refused
        return body

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        await self._delay(NETWORK_DELAY_S, request)
        await self._faults.before_request(request)
        if response := self._faults.foreign_response(request):
            yield response
            return
        try:
            async with aclosing(self._server.follow(request)) as events:
                async for at, line in events:
                    delay_s = at + await self._faults.watch_delay_s(request) - asyncio.get_running_loop().time()
                    await self._delay(max(0.0, delay_s), request)
                    yield line
                    if self._faults.repeats_event(request):
                        yield line
        except ApiRefusal as refusal:
            raise parse_error(refusal.body, status=refusal.code, about=request.about) from refusal
        except WatchCut as cut:
            raise connection_lost(request) from cut

    async def _delay(self, seconds: float, request: Request) -> None:
        del request
        self._raise_if_killed()
        if seconds:
            await asyncio.sleep(seconds)
        self._raise_if_killed()

    def _raise_if_killed(self) -> None:
        if self._process.killed:
            raise asyncio.CancelledError


class FaultHooks:
    """Hooks at each stage of a request. These do nothing; subclasses inject faults."""

    affects_lease = False
    """Whether requests for the leader lease pass the hooks as well."""

    async def before_request(self, request: Request) -> None:
        """Called before the server receives a request; may raise in its place."""

    def foreign_response(self, request: Request) -> bytes | None:
        """A response of another server, such as a proxy, in place of the real one."""

    async def after_request(self, request: Request, refused: ApiError | None) -> None:
        """Called when the server has executed or refused a request, before the response leaves."""

    def response_received(self, request: Request) -> None:
        """Called when the response has arrived."""

    async def watch_delay_s(self, request: Request) -> float:
        """The delay of the next watch event; may raise to break the stream."""
        return WATCH_DELAY_S

    def repeats_event(self, request: Request) -> bool:
        """Whether the watch sends the last event again."""
        return False


def connection_lost(request: Request) -> ApiError:
    """The error of a request with a broken connection."""
    return Unreachable("https://simulated", "the connection was lost", about=request.about)
