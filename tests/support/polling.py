"""Waits for conditions that only polling can see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def equals(actual: Awaitable[object], expected: object) -> bool:
    return await actual == expected


async def until(condition: Callable[[], Awaitable[object]], within: float = 60) -> None:
    """Polls until the condition holds."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110  (an HTTP client can only poll)
            await asyncio.sleep(0.02)
