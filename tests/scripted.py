"""A transport that answers what a test wants, and a clock that never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType

from pincompute.base.clock import SystemClock
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.request import Request


class Scripted:
    """Answers with these in turn; after the last one it is silent."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.asked: list[Request] = []
        self.done = asyncio.Event()
        """Set when more is asked than there are answers."""
        self._answers = list(answers)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def send(self, request: Request) -> bytes:
        self.asked.append(request)
        if not self._answers:
            self.done.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        for line in (await self.send(request)).splitlines():
            yield line


class Resting(SystemClock):
    """Notes how long it was asked to sleep, and lets that pass at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._passed = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._passed += seconds
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self._passed


def over(transport: Scripted, clock: Resting | None = None) -> Client:
    return Client(Access("https://10.0.0.1"), "test", transport=transport, clock=clock or Resting(), chance=lambda: 0.5)
