"""Informer: keeps all objects of a kind current by list and watch, and reports every change.

After a broken connection it watches again from the last resourceVersion; after an expired one it lists again and
reports the differences, so that readers never miss a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from pincompute.base.backoff import backoff_s
from pincompute.base.clock import Clock
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import KIND_NOT_SERVED
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden, Gone, NotFound
from pincompute.kube.object_reader import Key, ObjectReader, Reading
from pincompute.kube.request import select
from pincompute.kube.resource import Resource
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, MODIFIED, Event, ends_initial_events

T = TypeVar("T")

MIN_STABLE_WATCH_S = 1.0
"""A watch that ends sooner counts as a failure: a server that shuts down ends watches as soon as they start."""
MAX_BACKOFF_S = 30.0
"""Longest delay between two attempts while the server does not respond."""
MAX_BACKOFF_REFUSED_S = 5.0
"""Longest delay while the kind is not served or access is denied. Shorter, because an administrator may fix it soon."""

_WATCH_LIST_REJECTED = (400, 422)
"""Statuses of a server that does not support watches with initial events."""

log = structlog.get_logger()


def _ignore(*_: Any) -> None:
    """Default of the callbacks."""


class Informer(Generic[T]):
    """Keeps the fields that `type` declares of each object. One task runs it; readers need no locks."""

    def __init__(  # noqa: PLR0913  (keyword-only)
        self,
        client: Client,
        resource: Resource,
        *,
        type: type[T],  # noqa: A002
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        on_change: Callable[[Event[T]], None] = _ignore,
        on_problem: Callable[[Problem | None], None] = _ignore,
        on_unreadable: Callable[[Event[msgspec.Raw], str], None] = _ignore,
        share: Callable[[T, T], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        """Set once after the first complete list, and never cleared; `staleness_s` tells how old the items may be."""
        self.responded = asyncio.Event()
        """Set once the informer is synced or has a problem, and never cleared."""
        self.problem: Problem | None = None
        """Why this kind cannot be listed: it is not served or access is denied. The informer keeps retrying."""
        self._client = client
        self._kind = resource
        self._selection = select(resource, namespace, labels=labels, fields=fields)
        self._reader = ObjectReader(type, self._selection.about)
        self._share = share
        """Lets a new item take over equal values of another one, to save memory."""
        self._newest: T | None = None
        self._on_change = on_change
        self._on_problem = on_problem
        self._on_unreadable = on_unreadable
        self._clock = clock or client.clock
        self._resource_version = ""
        self._changed = asyncio.Event()
        self._last_heard = self._last_tried = self._clock.monotonic()
        self._retry_requested = asyncio.Event()
        self._watching_since: float | None = None
        self._last_logged = ""

    async def run(self) -> None:
        """Lists and watches forever. Changes during an interruption are reported after it, as if they happened then."""
        failures = 0
        while True:
            self._last_tried = self._clock.monotonic()
            max_backoff = MAX_BACKOFF_S
            try:
                await self._list_and_watch()
            except ApiError as error:
                max_backoff = self._handle_error(error)
            failures = 0 if self._was_stable() else failures + 1
            self._watching_since = None
            if failures:
                await self._sleep_before_retry(backoff_s(failures, self._client.random(), max_backoff))

    def retry_now(self) -> None:
        """Ends a backoff at once; called when the server is known to respond."""
        self._retry_requested.set()

    @property
    def resource_version(self) -> int:
        """The items include every change up to this resourceVersion; 0 while it is unknown."""
        return int(self._resource_version or 0)

    @property
    def watching(self) -> bool:
        """Whether a watch is open and the items are complete, so that changes are reported at once."""
        return self._watching_since is not None

    def staleness_s(self) -> float:
        """Seconds since the last message of the server. For a kind without changes it can grow until the watch ends."""
        return self._clock.monotonic() - self._last_heard

    def idle_s(self) -> float:
        """Seconds without a message or an attempt. It stays small while an unreachable server is retried."""
        return self._clock.monotonic() - max(self._last_heard, self._last_tried)

    async def wait_for(self, predicate: Callable[[Mapping[Key, T]], bool]) -> None:
        """Returns as soon as the predicate holds for the items. Use `asyncio.timeout` to bound it."""
        while not predicate(self.items):
            self._changed.clear()
            await self._changed.wait()

    async def _sleep_before_retry(self, seconds: float) -> None:
        self._retry_requested.clear()
        tasks = [asyncio.ensure_future(each) for each in (self._clock.sleep(seconds), self._retry_requested.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _list_and_watch(self) -> None:
        """Lists if needed, then watches until the server ends the watch."""
        if not self._resource_version and self._client.supports_watch_list:
            await self._watch_list()
            return
        if not self._resource_version:
            await self._list()
        await self._watch(self._client.watch_lines(self._selection, self._resource_version), None)

    async def _watch_list(self) -> None:
        """Lists by a watch. The server sends one object at a time, so that neither side holds the whole list twice."""
        try:
            await self._watch(self._client.watch_list_lines(self._selection), set(self.items))
        except ApiError as error:
            if error.status not in _WATCH_LIST_REJECTED or self._resource_version:
                raise
            log.info("watch list unsupported", about=self._selection.about, why=error.message)
            self._client.supports_watch_list = False
            await self._list_and_watch()

    async def _list(self) -> None:
        unlisted = set(self.items)
        resource_version = ""
        async with aclosing(self._client.list_pages(self._selection, self._reader.read_page)) as pages:
            async for page in pages:
                self._last_heard = self._clock.monotonic()
                for reading in page.items or ():
                    unlisted.discard(reading.key)
                    self._take_in(reading)
                resource_version = page.metadata.resource_version
        self._finish_list(unlisted, resource_version)

    async def _watch(self, lines: AsyncGenerator[bytes], unlisted: set[Key] | None) -> None:
        """Applies events to the items.

        `unlisted` are, while the server still sends initial events, the known objects that it has not sent yet.
        """
        if unlisted is None:
            self._watching_since = self._clock.monotonic()
        async with aclosing(lines):
            async for line in lines:
                reading = self._reader.read_line(line)
                self._last_heard = self._clock.monotonic()
                if reading.type != BOOKMARK:
                    self._take_in(reading)
                if unlisted is None:
                    self._advance(reading.resource_version)
                elif reading.type != BOOKMARK:
                    unlisted.discard(reading.key)
                elif ends_initial_events(reading.raw):
                    self._finish_list(unlisted, reading.resource_version)
                    unlisted = None
                else:
                    # An old server ignores `sendInitialEvents` and starts an ordinary watch.
                    raise ApiError(400, "BadRequest", "bookmark before the initial events", about=self._selection.about)
        # The regular end of the response is a sign of life, too.
        self._last_heard = self._clock.monotonic()

    def _take_in(self, reading: Reading[T]) -> None:
        """Applies one event or listed item. An object with invalid fields keeps its last valid version in the items."""
        key, item = reading.key, reading.item
        if reading.error:
            log.error("undecodable object", about=self._selection.about, key="/".join(key), why=reading.error)
            self._on_unreadable(Event(reading.type, reading.raw), reading.error)
        if reading.type == DELETED:
            last = item if item is not None else self.items.get(key)
            if last is not None:
                self._remove(key, last)
        elif item is not None:
            self._store(key, item)

    def _advance(self, resource_version: str) -> None:
        if int(resource_version or 0) < self.resource_version:
            # After etcd was restored from a backup, our resourceVersion lies in its future. A watch from there would
            # miss all changes until the server has caught up.
            raise Gone(410, "Gone", "the server's resourceVersion went backwards", about=self._selection.about)
        self._resource_version = resource_version

    def _finish_list(self, unlisted: set[Key], resource_version: str) -> None:
        """Marks the list as complete, and removes the known objects that were not in it."""
        for key in unlisted:
            self._remove(key, self.items[key])
        self._resource_version = resource_version
        self._watching_since = self._clock.monotonic()
        self.synced.set()
        self._set_problem(None)

    def _was_stable(self) -> bool:
        since = self._watching_since
        return since is not None and self._clock.monotonic() - since > MIN_STABLE_WATCH_S

    def _handle_error(self, error: ApiError) -> float:
        """Records an error and returns the longest backoff after it."""
        if error.message != self._last_logged or self._was_stable():
            self._last_logged = error.message
            log.warning("watch failed", about=self._selection.about, why=error.message)
        if not 400 <= error.status < 500 or error.status == 429:
            # The error is not about this request: watch again from the same resourceVersion.
            return MAX_BACKOFF_S
        # The server rejects the resourceVersion, the kind or the user: only a new list restores a complete view.
        self._resource_version = ""
        self._last_heard = self._clock.monotonic()
        if isinstance(error, Gone):
            return MAX_BACKOFF_S
        self._set_problem(self._problem_of(error))
        return MAX_BACKOFF_REFUSED_S if isinstance(error, NotFound | Forbidden) else MAX_BACKOFF_S

    def _problem_of(self, error: ApiError) -> Problem:
        if not isinstance(error, NotFound):
            return error.problem()
        what = f"the cluster does not serve {self._kind.plural} of {self._kind.api_version}"
        return Problem(KIND_NOT_SERVED, what, Where(object=self._selection.about))

    def _set_problem(self, problem: Problem | None) -> None:
        self.responded.set()
        if problem != self.problem:
            self.problem = problem
            self._on_problem(problem)

    def _store(self, key: Key, item: T) -> None:
        known = self.items.get(key)
        if known == item:
            # None of the declared fields has changed.
            return
        if self._share:
            other, self._newest = self._newest if known is None else known, item
            if other is not None:
                self._share(item, other)
        self.items[key] = item
        self._notify(Event(ADDED if known is None else MODIFIED, item, known))

    def _remove(self, key: Key, last: T) -> None:
        self.items.pop(key, None)
        self._notify(Event(DELETED, last))

    def _notify(self, event: Event[T]) -> None:
        self._changed.set()
        self._on_change(event)
