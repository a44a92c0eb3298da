"""Parses long texts beside the event loop. The longest that are accepted take about a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONG_TEXT_CHARS = 4_096
"""Shorter texts take some milliseconds, and a thread would cost them a good part of that."""
_SEPARATORS = ("---", "...")
"""Each further document of a text may have as many errors as the first, with a suggestion for each."""


class LongTexts:
    """One long text is parsed at a time: threads share one interpreter, so several would only slow down the loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def parse(self, text: str, parse: Callable[[], T]) -> T:
        if len(text) <= _LONG_TEXT_CHARS and sum(map(text.count, _SEPARATORS)) <= 1:
            return parse()
        async with self._lock:
            return await asyncio.to_thread(parse)
