"""Retries and counters of requests, over a scripted transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from pincompute.kube.errors import ApiError, Unreachable, parse_error
from pincompute.kube.request import Request
from pincompute.kube.resource import PODS
from scripted_transport import InstantClock, ScriptedTransport, client_over

CUT = Unreachable("https://10.0.0.1", "connection reset by peer")
BUSY = parse_error(b"{}", status=429, retry_after="1")


async def test_uses_given_clock_and_random_source() -> None:
    clock = InstantClock()
    async with client_over(ScriptedTransport(CUT, BUSY, b'{"kind":"Pod"}'), clock) as client:
        assert await client.get(PODS, "web", "me") == {"kind": "Pod"}
    assert clock.slept == [0.2 * 0.75, 1 * 1.125]


async def test_counts_requests_by_verb_resource_and_status() -> None:
    transport = ScriptedTransport(BUSY, b'{"kind":"Pod"}', b"one\ntwo", parse_error(b"", status=404))
    async with client_over(transport, InstantClock()) as client:
        await client.get(PODS, "web", "me")
        assert [line async for line in client.logs("me", "web")] == ["one", "two"]
        with pytest.raises(ApiError):
            await client.delete(PODS, "web", "me")
        stats = client.request_stats
    assert stats.requests == {
        ("get", "pods", 429): 1,
        ("get", "pods", 200): 1,
        ("get", "pods/log", 200): 1,
        ("delete", "pods", 404): 1,
    }
    assert (stats.retries, stats.received_bytes) == (1, {"pods": 14, "pods/log": 6})


async def test_does_not_repeat_response_that_has_begun() -> None:
    class Breaking(ScriptedTransport):
        async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
            self.requests.append(request)
            yield b"one"
            raise CUT

    breaking = Breaking()
    async with client_over(breaking) as client:
        lines = client.logs("me", "web")
        assert await anext(lines) == "one"
        with pytest.raises(Unreachable):
            await anext(lines)
    assert len(breaking.requests) == 1


async def test_retry_budget_bounds_load_during_outage() -> None:
    lost = ScriptedTransport(*[CUT] * 1000)
    async with client_over(lost) as client:
        for _ in range(200):
            with pytest.raises(Unreachable):
                await client.get(PODS, "web", "me")
    # The budget: ten retries, and one for each ten requests.
    assert len(lost.requests) == 200 + client.request_stats.retries <= 200 * 1.1 + 10
    assert client.request_stats.retries >= 29
