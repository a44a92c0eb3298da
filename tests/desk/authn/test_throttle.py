"""Checks of unknown credentials are limited by address, and valid ones are not affected."""

from __future__ import annotations

import asyncio

import pytest

from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGN_IN_UNAVAILABLE
from pincompute.desk.authn import throttle as bounds
from pincompute.desk.authn.authenticator import Credentials, unauthenticated
from pincompute.desk.authn.throttle import AuthThrottle
from pincompute.desk.limits.request_queue import Busy

REJECTION = Refused(unauthenticated("nobody knows this token"))


class SetClock(SystemClock):
    """Its time is set by the test."""

    now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s


class CountedChecks:
    """Counts the checks of credentials."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.throttle = AuthThrottle(self.clock)
        self.count = 0

    async def check(self, token: str, address: str = "10.0.0.1", why: Refused | None = REJECTION) -> Refused | None:
        try:
            async with self.throttle.attempt(Credentials(token, address=address)):
                self.count += 1
                if why:
                    raise why
        except Refused as refused:
            return refused
        return None


async def test_rejection_is_cached() -> None:
    checks = CountedChecks()
    for _ in range(3):
        told = await checks.check("guess")
        assert told
        assert told.problems == REJECTION.problems
    assert checks.count == 1
    checks.clock.now_s += bounds.REJECTION_CACHE_TTL_S
    await checks.check("guess")
    assert checks.count == 2


async def test_failures_are_limited_by_address() -> None:
    checks = CountedChecks()
    told = [await checks.check(f"guess {number}") for number in range(1_000)]
    assert checks.count == pytest.approx(bounds.FAILURES_PER_S * bounds.FAILURE_BURST_S, abs=1)
    assert isinstance(told[-1], Busy)
    assert told[-1].retry_after_s == 1
    assert "from 10.0.0.1" in told[-1].problems[0].what
    # Other addresses are not affected, and this one is admitted again after the delay.
    assert await checks.check("good", "10.0.0.2", why=None) is None
    checks.clock.now_s += told[-1].retry_after_s
    assert await checks.check("good", why=None) is None


@pytest.mark.parametrize("why", [None, Refused(Problem(SIGN_IN_UNAVAILABLE, "the provider does not answer"))])
async def test_successes_and_failures_of_the_provider_are_not_counted(why: Refused | None) -> None:
    checks = CountedChecks()
    for number in range(1_000):
        assert await checks.check(f"token {number % 2}", why=why) is why
    assert checks.count == 1_000


async def test_concurrent_checks_are_limited() -> None:
    throttle, finish, running = AuthThrottle(SetClock()), asyncio.Event(), 0

    async def check(address: str) -> None:
        nonlocal running
        async with throttle.attempt(Credentials("a token", address=address)):
            running += 1
            await finish.wait()

    many = [asyncio.create_task(check("10.0.0.1")) for _ in range(bounds.CHECK_LIMITS.max_per_client + 1)]
    other = asyncio.create_task(check("10.0.0.2"))
    _, waiting = await asyncio.wait([*many, other], timeout=0)
    while len(waiting) > bounds.CHECK_LIMITS.max_per_client + 1:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert running == bounds.CHECK_LIMITS.max_running
    finish.set()
    told = await asyncio.gather(*many, other, return_exceptions=True)
    assert [type(each) for each in told if each is not None] == [Busy]


async def test_rejection_cache_is_bounded() -> None:
    checks = CountedChecks()
    for number in range(bounds.MAX_CACHED_REJECTIONS + 10):
        checks.clock.now_s += 1
        await checks.check(f"guess {number}")
    assert len(checks.throttle._rejections) == bounds.MAX_CACHED_REJECTIONS  # noqa: SLF001
