"""An informer: keeps a kind's objects as last seen, and tells of every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from pincompute.base.clock import Clock
from pincompute.base.pause import backoff
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import KIND_NOT_SERVED
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden, Gone, NotFound
from pincompute.kube.request import select
from pincompute.kube.resource import Resource
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, MODIFIED, Event, Told, all_told, identity, told

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""

STEADY = 1.0
"""Seconds that a watch must have stood to count as one: a server on its way out ends them as soon as they begin."""
LONGEST = 30.0
"""Seconds between two attempts at what does not answer."""
LONGEST_REFUSED = 5.0
"""Seconds between two attempts at what is not served, or not allowed: it is there as soon as somebody sees to it."""

_NOT_STREAMED = (400, 422)
"""How a server refuses a watch that begins with what is there; which older ones take for an ordinary watch."""

log = structlog.get_logger()


def _nobody(*_: Any) -> None:
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
        on_problem: Callable[[Problem | None], None] = _nobody,
        on_unreadable: Callable[[Event[msgspec.Raw], str], None] = _nobody,
        clock: Clock | None = None,
    ) -> None:
        self.items: dict[Key, T] = {}
        self.synced = asyncio.Event()
        """Set once everything that is there was seen, and never unset: `age` tells how old the picture is."""
        self.answered = asyncio.Event()
        """Set once it is synced or has a problem, and never unset."""
        self.problem: Problem | None = None
        """Why the server does not show this kind: it is not served, or we may not look. It is asked again and again."""
        self._client = client
        self._kind = resource
        self._selection = select(resource, namespace, labels=labels, fields=fields)
        self._decoder = msgspec.json.Decoder(type)
        self._on_change = on_change
        self._on_problem = on_problem
        self._on_unreadable = on_unreadable
        self._clock = clock or client.clock
        self._revision = ""
        self._changed = asyncio.Event()
        self._heard = self._tried = self._clock.monotonic()
        self._hurried = asyncio.Event()
        self._stands_since: float | None = None
        self._said = ""

    async def run(self) -> None:
        """See all there is, then watch, for ever: a break is mended, and what was missed in it is told as if seen."""
        failures = 0
        while True:
            self._tried = self._clock.monotonic()
            longest = LONGEST
            try:
                await self._follow()
            except ApiError as error:
                longest = self._failed(error)
            failures = 0 if self._stood() else failures + 1
            self._stands_since = None
            if failures:
                await self._rest(backoff(failures, self._client.chance(), longest))

    def hurry(self) -> None:
        """The server is known to answer: whoever waits for it tries at once."""
        self._hurried.set()

    @property
    def revision(self) -> int:
        """Everything that happened up to here is in the items; 0 while that is not known."""
        return int(self._revision or 0)

    @property
    def stands(self) -> bool:
        """What happens is told at once: it is not just being asked for again."""
        return self._stands_since is not None

    def age(self) -> float:
        """Seconds since the server was last heard; of a quiet kind it may say nothing until the watch is renewed."""
        return self._clock.monotonic() - self._heard

    def still(self) -> float:
        """Seconds in which nothing was heard, and nothing was tried: of a server that is away it is asked for ever."""
        return self._clock.monotonic() - max(self._heard, self._tried)

    async def wait_for(self, predicate: Callable[[Mapping[Key, T]], bool]) -> None:
        """Return as soon as the items are as the predicate wants; `asyncio.timeout` bounds it."""
        while not predicate(self.items):
            self._changed.clear()
            await self._changed.wait()

    async def _rest(self, seconds: float) -> None:
        self._hurried.clear()
        waits = [asyncio.ensure_future(each) for each in (self._clock.sleep(seconds), self._hurried.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _follow(self) -> None:
        """Until the server ends the watch."""
        if not self._revision and self._client.streams:
            await self._stream()
            return
        if not self._revision:
            await self._list()
        await self._watch(self._client.watch_lines(self._selection, self._revision), None)

    async def _stream(self) -> None:
        """What is there is told one by one, so neither side ever holds all of it twice."""
        try:
            await self._watch(self._client.stream_lines(self._selection), set(self.items))
        except ApiError as error:
            if error.status not in _NOT_STREAMED or self._revision:
                raise
            log.info("lists come by pages", about=self._selection.about, why=error.message)
            self._client.streams = False
            await self._follow()

    async def _list(self) -> None:
        unseen = set(self.items)
        revision = ""
        async with aclosing(self._client.pages(self._selection)) as pages:
            async for page in pages:
                self._heard = self._clock.monotonic()
                for raw in page.items:
                    key, item = self._read(raw)
                    unseen.discard(key)
                    if item is not None:
                        self._keep(key, item)
                revision = page.revision
        self._complete(unseen, revision)

    async def _watch(self, lines: AsyncGenerator[bytes], unseen: set[Key] | None) -> None:
        """Follow what happens; `unseen` are, while the server tells what is there, those it has not told of yet."""
        if unseen is None:
            self._stands_since = self._clock.monotonic()
        async with aclosing(lines):
            async for line in lines:
                event = told(line, self._selection.about)
                self._heard = self._clock.monotonic()
                who = identity(event.object)
                if event.type != BOOKMARK:
                    self._take(event, who.key)
                if unseen is None:
                    self._advance(who.metadata.resource_version)
                elif event.type != BOOKMARK:
                    unseen.discard(who.key)
                elif all_told(event.object):
                    self._complete(unseen, who.metadata.resource_version)
                    unseen = None
                else:
                    raise ApiError(400, "BadRequest", "a bookmark came first", about=self._selection.about)
        # It ended politely, which is a word too.
        self._heard = self._clock.monotonic()

    def _take(self, event: Told, key: Key) -> None:
        item = self._decode(event, key)
        if event.type == DELETED:
            last = item if item is not None else self.items.get(key)
            if last is not None:
                self._forget(key, last)
        elif item is not None:
            self._keep(key, item)

    def _advance(self, revision: str) -> None:
        if int(revision or 0) < self.revision:
            # Watches of a server that was restored from a copy begin in its future, and miss what happens until then.
            raise Gone(410, "Gone", "the server's revisions went back", about=self._selection.about)
        self._revision = revision

    def _complete(self, unseen: set[Key], revision: str) -> None:
        """All there is was seen: what was known before and is not among it is gone."""
        for key in unseen:
            self._forget(key, self.items[key])
        self._revision = revision
        self._stands_since = self._clock.monotonic()
        self.synced.set()
        self._tell_problem(None)

    def _stood(self) -> bool:
        since = self._stands_since
        return since is not None and self._clock.monotonic() - since > STEADY

    def _failed(self, error: ApiError) -> float:
        """Note it, and say how long to wait at most."""
        if error.message != self._said or self._stood():
            self._said = error.message
            log.warning("watch broken", about=self._selection.about, why=error.message)
        if not 400 <= error.status < 500 or error.status == 429:
            # It is not about what was asked: go on where it broke.
            return LONGEST
        # The server does not accept the revision, the kind or us: from a new list on all is known again.
        self._revision = ""
        self._heard = self._clock.monotonic()
        if isinstance(error, Gone):
            return LONGEST
        self._tell_problem(self._problem_of(error))
        return LONGEST_REFUSED if isinstance(error, NotFound | Forbidden) else LONGEST

    def _problem_of(self, error: ApiError) -> Problem:
        if not isinstance(error, NotFound):
            return error.problem()
        what = f"the cluster serves no {self._kind.plural} of {self._kind.api_version}"
        return Problem(KIND_NOT_SERVED, what, Where(object=self._selection.about))

    def _tell_problem(self, problem: Problem | None) -> None:
        self.answered.set()
        if problem != self.problem:
            self.problem = problem
            self._on_problem(problem)

    def _read(self, raw: msgspec.Raw) -> tuple[Key, T | None]:
        key = identity(raw).key
        return key, self._decode(Event(ADDED, raw), key)

    def _decode(self, told: Event[msgspec.Raw] | Told, key: Key) -> T | None:
        """An object's declared fields; None where they are not of the declared types.

        One object that somebody spoiled must not keep the others from being seen: the last good view of it stays.
        """
        try:
            return self._decoder.decode(told.object)
        except msgspec.ValidationError as error:
            log.error("object cannot be read", about=self._selection.about, key="/".join(key), why=str(error))
            self._on_unreadable(Event(told.type, told.object), str(error))
            return None

    def _keep(self, key: Key, item: T) -> None:
        known = self.items.get(key)
        if known == item:
            # Nothing that anybody declared interest in is different.
            return
        self.items[key] = item
        self._tell(Event(ADDED if known is None else MODIFIED, item, known))

    def _forget(self, key: Key, last: T) -> None:
        self.items.pop(key, None)
        self._tell(Event(DELETED, last))

    def _tell(self, event: Event[T]) -> None:
        self._changed.set()
        self._on_change(event)
