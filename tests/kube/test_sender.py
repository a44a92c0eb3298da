"""The sender over a transport of the test's own: what is counted, and what is sent once more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType

import pytest

from pincompute.base.clock import SystemClock
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Unreachable, error_of
from pincompute.kube.request import Request
from pincompute.kube.resource import PODS

CUT = Unreachable("https://10.0.0.1", "connection reset by peer")
BUSY = error_of(b"{}", status=429, retry_after="1")


class Scripted:
    """Answers with these in turn, the last one for ever."""

    def __init__(self, *answers: bytes | ApiError) -> None:
        self.asked: list[Request] = []
        self._answers = answers

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def send(self, request: Request) -> bytes:
        self.asked.append(request)
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        for line in (await self.send(request)).splitlines():
            yield line


class Resting(SystemClock):
    """Notes how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def over(transport: Scripted, clock: Resting) -> Client:
    return Client(Access("https://10.0.0.1"), "test", transport=transport, clock=clock, chance=lambda: 0.5)


async def test_time_and_chance_are_those_handed_in() -> None:
    clock = Resting()
    async with over(Scripted(CUT, BUSY, b'{"kind":"Pod"}'), clock) as client:
        assert await client.get(PODS, "web", "me") == {"kind": "Pod"}
    assert clock.slept == [0.2 * 0.75, 1 * 1.125]


async def test_every_request_is_counted_by_what_rights_call_it() -> None:
    transport = Scripted(BUSY, b'{"kind":"Pod"}', b"one\ntwo", error_of(b"", status=404))
    async with over(transport, Resting()) as client:
        await client.get(PODS, "web", "me")
        assert [line async for line in client.logs("me", "web")] == ["one", "two"]
        with pytest.raises(ApiError):
            await client.delete(PODS, "web", "me")
        traffic = client.traffic
    assert traffic.requests == {
        ("get", "pods", 429): 1,
        ("get", "pods", 200): 1,
        ("get", "pods/log", 200): 1,
        ("delete", "pods", 404): 1,
    }
    assert (traffic.retries, traffic.received) == (1, {"pods": 14, "pods/log": 6})
