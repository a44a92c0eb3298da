"""Helpers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def beside_loop(work: Callable[[], T], *, large: bool) -> T:
    """Runs large work on a thread, so that other requests are served meanwhile; small work at once.

    Threads share one interpreter, which the loop gets back within milliseconds.
    """
    return await asyncio.to_thread(work) if large else work()


async def run_until_first_completes(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run the coroutines until one returns or raises. Its exception propagates; the others are cancelled."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        completed, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in completed:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
