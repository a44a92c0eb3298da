"""Transport with prepared responses, and a clock that never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType

from pincompute.base.clock import SystemClock
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.request import Request


class ConnectedTransport:
    """Base of transports that have no connections to open or close."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class ScriptedTransport(ConnectedTransport):
    """Returns the given responses in order; after the last one it blocks."""

    def __init__(self, *responses: bytes | ApiError) -> None:
        self.requests: list[Request] = []
        self.exhausted = asyncio.Event()
        """Set when there are more requests than responses."""
        self._responses = list(responses)

    async def send(self, request: Request) -> bytes:
        self.requests.append(request)
        if not self._responses:
            self.exhausted.set()
            await asyncio.Event().wait()
        response = self._responses.pop(0)
        if isinstance(response, ApiError):
            raise response
        return response

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        for line in (await self.send(request)).splitlines():
            yield line


class InstantClock(SystemClock):
    """Records each sleep and advances at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._passed = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._passed += seconds
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self._passed


def client_over(transport: ScriptedTransport, clock: InstantClock | None = None) -> Client:
    return Client(
        Access("https://10.0.0.1"), "test", transport=transport, clock=clock or InstantClock(), chance=lambda: 0.5
    )
