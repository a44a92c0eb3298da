"""Collects what is to be stored of the history, and stores it in batches, so that watches never wait for a database.

What waits is bounded. While the database is full or locked the newest entries are kept, and the number of lost ones is
logged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError

from pincompute.api.history import LastState
from pincompute.api.insight import WorkloadItem
from pincompute.base.clock import Clock
from pincompute.insight.history_store import (
    Connection,
    HistoryStore,
    forget_project,
    load_states,
    prune,
    store_batch,
)
from pincompute.insight.recorder import KeyedEntry
from pincompute.objects.times import format_time

MAX_PENDING = 50_000
"""Entries and states that wait for the database."""
FLUSH_INTERVAL_S = 0.2
RETRY_INTERVAL_S = 5.0
PRUNE_INTERVAL_S = 300.0
MAX_AGE = timedelta(days=30)

log = structlog.get_logger()
T = TypeVar("T")


class History:
    """The recent past in memory until it is stored; queries wait for what was observed before them."""

    def __init__(self, store: HistoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._entries: deque[KeyedEntry] = deque()
        self._states: dict[str, LastState] = {}
        """By uid; only the newest state of a workload is stored."""
        self._forgotten: list[tuple[str, str]] = []
        """Projects to forget, each with the time before which, or an empty one."""
        self._baseline: dict[str, LastState] = {}
        """Workloads as an earlier process has seen them last."""
        self._flushing = asyncio.Lock()
        self._dropped = 0

    async def load(self) -> None:
        """Reads the states of an earlier process, so that only what has changed since is recorded."""
        self._baseline = {each.workload.uid: each for each in await self._store.transact(load_states)}

    def baseline(self, uid: str) -> WorkloadItem | None:
        state = self._baseline.get(uid)
        return state.workload if state else None

    def missing(self, existing: set[str]) -> Iterator[LastState]:
        """The states of workloads that do not exist any more."""
        gone = [state for uid, state in self._baseline.items() if uid not in existing]
        self._baseline = {}
        yield from gone

    def add_entries(self, entries: Iterable[KeyedEntry]) -> None:
        for entry in entries:
            if len(self._entries) >= MAX_PENDING:
                self._entries.popleft()
                self._dropped += 1
            self._entries.append(entry)

    def remember(self, state: LastState, deleted_at: str = "") -> None:
        if deleted_at:
            state = msgspec.structs.replace(state, deleted_at=deleted_at)
        if state.workload.uid in self._states or len(self._states) < MAX_PENDING:
            self._states[state.workload.uid] = state
        else:
            self._dropped += 1

    def forget_project(self, project: str, before: str = "") -> None:
        """Removes the history of a project; with a time only what is older."""

        def is_kept(of_project: str, at: str) -> bool:
            return of_project != project or bool(before and at >= before)

        def kept_states(states: dict[str, LastState]) -> dict[str, LastState]:
            return {uid: each for uid, each in states.items() if is_kept(each.workload.project, each.seen_at)}

        self._entries = deque(each for each in self._entries if is_kept(each.entry.project, each.entry.at))
        self._states, self._baseline = kept_states(self._states), kept_states(self._baseline)
        self._forgotten.append((project, before))

    async def run(self) -> None:
        """Stores what waits, and removes what is too old, until cancelled."""
        prune_at = 0.0
        while True:
            await self._clock.sleep(FLUSH_INTERVAL_S)
            try:
                await self.flush()
                if self._clock.monotonic() >= prune_at:
                    prune_at = self._clock.monotonic() + PRUNE_INTERVAL_S
                    await self._store.transact(partial(prune, oldest=format_time(self._clock.now() - MAX_AGE)))
            except (SQLAlchemyError, OSError) as error:
                log.error("history not stored", why=_cause(error), waiting=len(self._entries), lost=self._dropped)
                await self._clock.sleep(RETRY_INTERVAL_S)

    async def flush(self) -> None:
        """Stores all that was observed before the call. Raises the error of the database, and loses nothing then."""
        async with self._flushing:
            entries, states, forgotten = self._entries, self._states, self._forgotten
            if not (entries or states or forgotten):
                return
            self._clear_pending()
            try:
                await self._store.transact(
                    partial(_store_all, forgotten=forgotten, new=entries, newest=states.values())
                )
            except BaseException:
                newer_entries, newer_states, newer_forgotten = self._entries, self._states, self._forgotten
                self._entries, self._states = entries, {**states, **newer_states}
                self._forgotten = [*forgotten, *newer_forgotten]
                self.add_entries(newer_entries)
                raise

    def _clear_pending(self) -> None:
        self._entries = deque()
        self._states = {}
        self._forgotten = []

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Reads after storing what was observed; if that fails, the stored part of the past is read."""
        try:
            await self.flush()
        except (SQLAlchemyError, OSError) as error:
            log.warning("history not stored before a read", why=_cause(error))
        return await self._store.transact(query, read_only=True)


def _store_all(
    connection: Connection,
    forgotten: Iterable[tuple[str, str]],
    new: Iterable[KeyedEntry],
    newest: Iterable[LastState],
) -> None:
    # What a project had before it was recreated is removed first: what waits belongs to the new one.
    for project, before in forgotten:
        forget_project(connection, project, before)
    store_batch(connection, new, newest)


def _cause(error: Exception) -> str:
    """The error of the database itself, without the statement and its values."""
    return str(getattr(error, "orig", None) or type(error).__name__)
