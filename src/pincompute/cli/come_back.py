"""Come back: who is told by a busy desk when to ask again does so, and tells the person meanwhile."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

import click

from pincompute.base.budget import Budget
from pincompute.base.clock import Clock
from pincompute.base.pause import ATTEMPTS, patience

RESERVE = 4
"""Requests that a command may send again, beside a tenth of all that it sends."""


class Answered(Protocol):
    """By whatever it was asked."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


A = TypeVar("A", bound=Answered)


def _chance() -> float:
    """From 0 to 1; what draws better takes longer to load."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


class ComeBack:
    """A desk that sends somebody away has done nothing yet: the same is sent once more, under its key."""

    def __init__(self, clock: Clock, chance: Callable[[], float] = _chance) -> None:
        self._clock = clock
        self._chance = chance
        self._budget = Budget(reserve=RESERVE)

    async def heard(self, send: Callable[[], Awaitable[A]], let_go: Callable[[A], Awaitable[None]]) -> A:
        self._budget.earn()
        for _ in range(ATTEMPTS - 1):
            answer = await send()
            wait = _told(answer, self._chance())
            if wait is None or not self._budget.spend():
                return answer
            await let_go(answer)
            click.echo(f"the desk is busy: asking again in {wait:.0f} s", err=True)
            await self._clock.sleep(wait)
        return await send()


def _told(answer: Answered, jitter: float) -> float | None:
    """Seconds; nothing where coming back is no use, or later than anybody would wait."""
    after = answer.headers.get("retry-after", "")
    return patience(float(after), jitter) if answer.status == 429 and after.isdecimal() else None
