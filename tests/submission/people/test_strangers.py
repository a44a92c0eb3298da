"""What nobody knows is looked at so often, and no more often; and who is known goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SIGN_IN_AWAY
from pincompute.submission.people import strangers as bounds
from pincompute.submission.people.door import Shown, not_signed_in
from pincompute.submission.people.strangers import Strangers
from pincompute.submission.queue import Busy

NOBODY = Refused(not_signed_in("nobody knows this token"))


class Moved(SystemClock):
    """As late as a test says."""

    at = 1_000.0

    def monotonic(self) -> float:
        return self.at


class Looks:
    """How often it was asked who that is."""

    def __init__(self) -> None:
        self.clock = Moved()
        self.strangers = Strangers(self.clock)
        self.times = 0

    async def at(self, token: str, address: str = "10.0.0.1", why: Refused | None = NOBODY) -> Refused | None:
        try:
            async with self.strangers.look(Shown(token, address=address)):
                self.times += 1
                if why:
                    raise why
        except Refused as refused:
            return refused
        return None


async def test_what_was_nobodys_is_not_looked_at_again_for_a_while() -> None:
    looks = Looks()
    for _ in range(3):
        told = await looks.at("guess")
        assert told
        assert told.problems == NOBODY.problems
    assert looks.times == 1
    looks.clock.at += bounds.FORGOTTEN
    await looks.at("guess")
    assert looks.times == 2


async def test_from_one_address_so_much_is_looked_at_and_no_more() -> None:
    looks = Looks()
    told = [await looks.at(f"guess {number}") for number in range(1_000)]
    assert looks.times == pytest.approx(bounds.RATE * bounds.AT_ONCE, abs=1)
    assert isinstance(told[-1], Busy)
    assert told[-1].seconds == 1
    assert "from 10.0.0.1" in told[-1].problems[0].what
    # Elsewhere it is nobody's fault, and here it goes on.
    assert await looks.at("good", "10.0.0.2", why=None) is None
    looks.clock.at += told[-1].seconds
    assert await looks.at("good", why=None) is None


@pytest.mark.parametrize("why", [None, Refused(Problem(SIGN_IN_AWAY, "the provider does not answer"))])
async def test_who_is_somebody_is_never_counted(why: Refused | None) -> None:
    looks = Looks()
    for number in range(1_000):
        assert await looks.at(f"token {number % 2}", why=why) is why
    assert looks.times == 1_000


async def test_so_many_at_once() -> None:
    strangers, may_end, begun = Strangers(Moved()), asyncio.Event(), 0

    async def looked(address: str) -> None:
        nonlocal begun
        async with strangers.look(Shown("a token", address=address)):
            begun += 1
            await may_end.wait()

    many = [asyncio.create_task(looked("10.0.0.1")) for _ in range(bounds.LOOKED_AT.of_one + 1)]
    other = asyncio.create_task(looked("10.0.0.2"))
    _, waiting = await asyncio.wait([*many, other], timeout=0)
    while len(waiting) > bounds.LOOKED_AT.of_one + 1:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert begun == bounds.LOOKED_AT.at_work
    may_end.set()
    told = await asyncio.gather(*many, other, return_exceptions=True)
    assert [type(each) for each in told if each is not None] == [Busy]


async def test_what_is_kept_in_mind_is_bounded() -> None:
    looks = Looks()
    for number in range(bounds.MOST + 10):
        looks.clock.at += 1
        await looks.at(f"guess {number}")
    assert len(looks.strangers._nobodys) == bounds.MOST  # noqa: SLF001
