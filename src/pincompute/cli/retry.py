"""Retries a request that an overloaded desk answers with 429 and Retry-After."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

import click

from pincompute.base.backoff import MAX_ATTEMPTS, retry_after_wait_s
from pincompute.base.clock import Clock
from pincompute.base.retry_budget import RetryBudget

RETRY_RESERVE = 4
"""Retries that a command may send beside a tenth of its requests."""


class RetryableResponse(Protocol):
    """Response of either HTTP client: the CLI's own, or aiohttp's."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


ResponseT = TypeVar("ResponseT", bound=RetryableResponse)


def _random_fraction() -> float:
    """Return a number from 0 to 1. The module `random` takes longer to load."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


class RetryPolicy:
    """Sends a request again after a 429: the desk rejects it before doing anything, so a repeat is safe."""

    def __init__(self, clock: Clock, random_fraction: Callable[[], float] = _random_fraction) -> None:
        self._clock = clock
        self._random_fraction = random_fraction
        self._budget = RetryBudget(reserve=RETRY_RESERVE)

    async def send_with_retry(
        self, send: Callable[[], Awaitable[ResponseT]], release: Callable[[ResponseT], Awaitable[None]]
    ) -> ResponseT:
        self._budget.earn()
        for _ in range(MAX_ATTEMPTS - 1):
            response = await send()
            wait_s = _retry_wait_s(response, self._random_fraction())
            if wait_s is None or not self._budget.spend():
                return response
            await release(response)
            click.echo(f"the desk is busy: retrying in {wait_s:.0f} s", err=True)
            await self._clock.sleep(wait_s)
        return await send()


def _retry_wait_s(response: RetryableResponse, jitter: float) -> float | None:
    """Return None for a response that must not be retried, or only after longer than a user would wait."""
    retry_after = response.headers.get("retry-after", "")
    if response.status != 429 or not retry_after.isdecimal():
        return None
    return retry_after_wait_s(float(retry_after), jitter)
