"""Parses long texts beside the event loop. The longest that are accepted take about a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONG_TEXT_CHARS = 16_384
"""Shorter texts take some milliseconds, and a thread would cost them a good part of that."""


class LongTexts:
    """One long text is parsed at a time: threads share one interpreter, so several would only slow down the loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def parse(self, text: str, parse: Callable[[], T]) -> T:
        if len(text) <= _LONG_TEXT_CHARS:
            return parse()
        async with self._lock:
            return await asyncio.to_thread(parse)
