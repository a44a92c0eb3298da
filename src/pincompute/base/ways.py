"""A line between two who speak at the same time: it is open until either hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_either(*ways: Coroutine[Any, Any, None]) -> None:
    """What went wrong with the one that ended first is told; the others are let go of, and end as they may."""
    tasks = [asyncio.create_task(each) for each in ways]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in ended:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
