"""An informer: keeps a kind's objects as last seen, and tells of every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from pincompute.base.clock import Clock
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import select
from pincompute.kube.resource import Resource
from pincompute.kube.retry import backoff
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, MODIFIED, Event, identity, told

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""

log = structlog.get_logger()


def _nobody(_: Event[Any]) -> None:
    """Told of changes where nobody asked to be."""


class Informer(Generic[T]):
    """Of each object only the fields that `type` declares are kept. One task runs it; readers need no locks."""

    def __init__(  # noqa: PLR0913  (what to watch, by name)
        self,
        client: Client,
        resource: Resource,
        *,
        type: type[T],  # noqa: A002
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        on_change: Callable[[Event[T]], None] = _nobody,
        clock: Clock | None = None,
    ) -> None:
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        """Set once everything that is there was seen, and never unset: `age` tells how old the picture is."""
        self._client = client
        self._selection = select(resource, namespace, labels=labels, fields=fields)
        self._decoder = msgspec.json.Decoder(type)
        self._on_change = on_change
        self._clock = clock or client.clock
        self._revision = ""
        self._changed = asyncio.Event()
        self._heard = self._clock.monotonic()

    async def run(self) -> None:
        """List, then watch, for ever: a break is mended, and what was missed in it is told as if it were seen."""
        failures = 0
        while True:
            try:
                if not self._revision:
                    await self._list()
                    failures = 0
                begun = self._clock.monotonic()
                await self._watch()
                # A server on its way out ends watches as soon as they begin.
                failures = 0 if self._clock.monotonic() - begun > 1 else failures + 1
            except ApiError as error:
                failures += 1
                if not isinstance(error, Unreachable):
                    # The server spoke, and did not accept the revision: list again. It may be too old
                    # (Gone), or from a time that a restored server does not know.
                    self._revision = ""
                log.warning("watch broken", about=self._selection.about, why=error.message, failures=failures)
            if failures:
                await self._clock.sleep(backoff(failures, self._client.chance(), 30))

    @property
    def revision(self) -> int:
        """Everything that happened up to here is in the items; 0 while that is not known."""
        return int(self._revision or 0)

    def age(self) -> float:
        """Seconds since the server was last heard; of a quiet kind it may say nothing until the watch is renewed."""
        return self._clock.monotonic() - self._heard

    async def wait_for(self, predicate: Callable[[Mapping[Key, T]], bool]) -> None:
        """Return as soon as the items are as the predicate wants; `asyncio.timeout` bounds it."""
        while not predicate(self.items):
            self._changed.clear()
            await self._changed.wait()

    async def _list(self) -> None:
        listing = await self._client.collect(self._selection, self._read)
        self._heard = self._clock.monotonic()
        present = dict(listing.items)
        for key in [key for key in self.items if key not in present]:
            self._forget(key, self.items[key])
        for key, item in present.items():
            if item is not None:
                self._keep(key, item)
        self._revision = listing.revision
        self.synced.set()

    async def _watch(self) -> None:
        """Follow what happens until the server ends the watch."""
        async with aclosing(self._client.watch_lines(self._selection, self._revision)) as lines:
            async for line in lines:
                self._heard = self._clock.monotonic()
                self._take(line)
        # It ended politely, which is a word too.
        self._heard = self._clock.monotonic()

    def _take(self, line: bytes) -> None:
        event = told(line, self._selection.about)
        self._revision = identity(event.object).metadata.resource_version
        if event.type == BOOKMARK:
            return
        key, item = self._read(event.object)
        if event.type == DELETED:
            last = item if item is not None else self.items.get(key)
            if last is not None:
                self._forget(key, last)
        elif item is not None:
            self._keep(key, item)

    def _read(self, raw: msgspec.Raw) -> tuple[Key, T | None]:
        """An object's key and declared fields; None where those are not of the declared types.

        One object that somebody spoiled must not keep the others from being seen: the last good view of it stays.
        """
        key = identity(raw).key
        try:
            return key, self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            log.error("object cannot be read", about=self._selection.about, key="/".join(key), why=str(error))
            return key, None

    def _keep(self, key: Key, item: T) -> None:
        known = self.items.get(key)
        if known == item:
            # Nothing that anybody declared interest in is different.
            return
        self.items[key] = item
        self._tell(Event(ADDED if known is None else MODIFIED, item))

    def _forget(self, key: Key, last: T) -> None:
        self.items.pop(key, None)
        self._tell(Event(DELETED, last))

    def _tell(self, event: Event[T]) -> None:
        self._changed.set()
        self._on_change(event)
