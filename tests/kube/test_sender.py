"""The sender over a transport of the test's own: what is counted, and what is sent once more."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from pincompute.kube.errors import ApiError, Unreachable, error_of
from pincompute.kube.request import Request
from pincompute.kube.resource import PODS
from scripted import Resting, Scripted, over

CUT = Unreachable("https://10.0.0.1", "connection reset by peer")
BUSY = error_of(b"{}", status=429, retry_after="1")


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


async def test_what_has_begun_to_come_is_not_asked_for_again() -> None:
    class Breaking(Scripted):
        async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
            self.asked.append(request)
            yield b"one"
            raise CUT

    breaking = Breaking()
    async with over(breaking) as client:
        lines = client.logs("me", "web")
        assert await anext(lines) == "one"
        with pytest.raises(Unreachable):
            await anext(lines)
    assert len(breaking.asked) == 1


async def test_an_outage_does_not_multiply_the_load() -> None:
    lost = Scripted(*[CUT] * 1000)
    async with over(lost) as client:
        for _ in range(200):
            with pytest.raises(Unreachable):
                await client.get(PODS, "web", "me")
    # Ten in reserve, and a tenth of all.
    assert len(lost.asked) == 200 + client.traffic.retries <= 200 * 1.1 + 10
    assert client.traffic.retries >= 29
