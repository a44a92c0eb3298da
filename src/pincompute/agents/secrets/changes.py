"""Wakes the requests that wait for a change of a secret."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress

SecretKey = tuple[str, str]
"""Uid of the project, and name."""


class Changes:
    """Waiting requests by secret, so that a rotation wakes only those that it concerns."""

    def __init__(self) -> None:
        self._waiting: dict[SecretKey, set[asyncio.Event]] = {}

    def notify(self, key: SecretKey) -> None:
        for event in self._waiting.get(key, ()):
            event.set()

    @contextmanager
    def subscribe(self, keys: Iterable[SecretKey]) -> Generator[asyncio.Event]:
        """An event that is set at each change of one of the secrets while the block runs."""
        event = asyncio.Event()
        with ExitStack() as stack:
            for key in set(keys):
                self._waiting.setdefault(key, set()).add(event)
                stack.callback(self._unsubscribe, key, event)
            yield event

    def _unsubscribe(self, key: SecretKey, event: asyncio.Event) -> None:
        waiting = self._waiting[key]
        waiting.discard(event)
        if not waiting:
            del self._waiting[key]


async def wait_until_set(event: asyncio.Event, timeout_s: float) -> None:
    """Returns when the event is set, or after the time limit."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
