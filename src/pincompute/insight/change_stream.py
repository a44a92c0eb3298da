"""The stream of changes: one sequence of events for all readers, each of which gets those of its projects.

A reader that was disconnected continues from the position that it has seen, as long as the events after it are kept.
A reader that is too slow, or was away for too long, is told to read its lists again. It never delays the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import msgspec

from pincompute.api.insight import RELOAD, ChangeFrame

MAX_KEPT_EVENTS = 10_000
"""Events that are kept for readers that come back."""
MAX_QUEUED_EVENTS = 1_000
"""Events that wait for one reader."""


class Subscription:
    """One reader. Frames are encoded once for all readers."""

    def __init__(self, projects: Iterable[str] | None) -> None:
        self._projects = None if projects is None else frozenset(projects)
        self._frames: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._overflowed = False

    def includes(self, project: str) -> bool:
        # What belongs to no project, such as nodes, is only for readers of everything.
        return self._projects is None or project in self._projects

    def push(self, frame: bytes) -> None:
        if len(self._frames) >= MAX_QUEUED_EVENTS:
            self._overflowed = True
            self._frames.clear()
        if not self._overflowed:
            self._frames.append(frame)
        self._arrived.set()

    async def take(self) -> list[bytes] | None:
        """The frames that have arrived, at least one; None if events were lost, so that the lists must be read."""
        await self._arrived.wait()
        self._arrived.clear()
        taken = list(self._frames)
        self._frames.clear()
        return None if self._overflowed else taken


class ChangeStream:
    """One task publishes; readers subscribe. `epoch` distinguishes processes: their positions cannot be compared."""

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._number = 0
        self._kept: deque[tuple[int, str, bytes]] = deque(maxlen=MAX_KEPT_EVENTS)
        self._subscriptions: set[Subscription] = set()

    @property
    def position(self) -> str:
        return f"{self._epoch}-{self._number}"

    @property
    def readers(self) -> int:
        return len(self._subscriptions)

    def send_change(self, event: str, project: str, data: object) -> None:
        self._number += 1
        frame = ChangeFrame(id=self.position, event=event, project=project, data=msgspec.Raw(msgspec.json.encode(data)))
        encoded = msgspec.json.encode(frame) + b"\n"
        self._kept.append((self._number, project, encoded))
        for subscription in self._subscriptions:
            if subscription.includes(project):
                subscription.push(encoded)

    @contextmanager
    def subscribe(self, projects: Iterable[str] | None, after: str) -> Generator[Subscription]:
        """The events after a position, and then each new one. A `reload` comes first if the position is not kept."""
        subscription = Subscription(projects)
        missed = self._missed(after)
        if missed is None:
            subscription.push(self.reload_frame())
        for project, frame in missed or ():
            if subscription.includes(project):
                subscription.push(frame)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def reload_frame(self) -> bytes:
        return msgspec.json.encode(ChangeFrame(id=self.position, event=RELOAD)) + b"\n"

    def _missed(self, after: str) -> list[tuple[str, bytes]] | None:
        """The events after a position; None if some of them are not kept, or the position is of another process."""
        if not after:
            return []
        epoch, _, number = after.rpartition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 18 or int(number) > self._number:
            return None
        if self._number - int(number) > len(self._kept):
            return None
        return [(project, frame) for kept, project, frame in self._kept if kept > int(number)]
