"""Come back: who is told by a busy desk when to ask again does so, and tells the person meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable

import aiohttp
import click

from pincompute.base.budget import Budget
from pincompute.base.clock import Clock
from pincompute.base.pause import ATTEMPTS, patience

RESERVE = 4
"""Requests that a command may send again, beside a tenth of all that it sends."""


def come_back(clock: Clock, chance: Callable[[], float] = random.random) -> aiohttp.ClientMiddlewareType:
    """A desk that sends somebody away has done nothing yet: the same is sent once more, under its key."""
    budget = Budget(reserve=RESERVE)

    async def sent(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        budget.earn()
        for _ in range(ATTEMPTS - 1):
            answer = await send(request)
            wait = _told(answer, chance())
            if wait is None or not budget.spend():
                return answer
            answer.release()
            click.echo(f"the desk is busy: asking again in {wait:.0f} s", err=True)
            await clock.sleep(wait)
        return await send(request)

    return sent


def _told(answer: aiohttp.ClientResponse, jitter: float) -> float | None:
    """Seconds; nothing where coming back is no use, or later than anybody would wait."""
    after = answer.headers.get("Retry-After", "")
    return patience(float(after), jitter) if answer.status == 429 and after.isdecimal() else None
