"""Follows the log files that a workload writes to its log volumes, by subscribing to the log store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from pincompute.api.logs import ContainerRun, LogEntry, LogLine, LogMarker
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.objects.times import parse_time_ns
from pincompute.platforms.kubernetes.logs.container_runs import LogFilter, stored_source
from pincompute.platforms.kubernetes.logs.lines import MAX_LINES_PER_READ, log_line
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient

RECONNECT_DELAY_S = 2.0

FileKey = tuple[str, str]
"""Uid of the pod and name of the file."""
Emit = Callable[[LogLine | LogMarker], Awaitable[None]]


class VolumeFileFollower:
    """Emits every line of the followed files once.

    Emitted lines are distinguished from new ones by their time. This is safe because the times of one file all
    come from one clock, that of the agent that ships it.
    """

    def __init__(self, store: LogStoreClient, clock: Clock, log_filter: LogFilter, emit: Emit) -> None:
        self._store = store
        self._clock = clock
        self._filter = log_filter
        self._emit = emit
        self._lock = asyncio.Lock()
        """Held while the lines of a batch are emitted, as a catch-up and the stream may deliver the same lines."""
        self._emitted_until: dict[FileKey, int] = {}
        """Time of the last emitted line, in nanoseconds."""

    def resume_after(self, run: ContainerRun, emitted_until: int) -> None:
        """Skips the lines of a file up to this time, because they were emitted before."""
        self._emitted_until[_file_key(run)] = emitted_until

    async def run(self) -> None:
        """Follows until cancelled. An unavailable store is reported by one marker, and retried."""
        unavailable = False
        while True:
            try:
                async with aclosing(self._store.follow_files(*self._project_and_name)) as batches:
                    async for batch in batches:
                        unavailable = False
                        if batch is None:
                            # Listening. Lines stored before this moment are read once.
                            await self.catch_up()
                        else:
                            await self._emit_new(batch.container_run, batch.entries)
            except Refused as refused:
                if not unavailable:
                    await self._emit(LogMarker("", "", refused.problems[0].what))
                unavailable = True
            await self._clock.sleep(RECONNECT_DELAY_S)

    async def catch_up(self) -> None:
        """Emits the lines that were stored since the last emitted one."""
        for run in await self._store.list_runs(*self._project_and_name):
            if self._is_followed(run):
                since = self._emitted_until.get(_file_key(run), 0)
                entries = await self._store.read_lines(
                    *self._project_and_name, run, tail=MAX_LINES_PER_READ, since=since
                )
                await self._emit_new(run, entries)

    async def _emit_new(self, run: ContainerRun, entries: Sequence[LogEntry]) -> None:
        """All lines of a batch have one time, so they are compared with the time before the batch."""
        if not self._is_followed(run):
            return
        async with self._lock:
            source, before = stored_source(self._filter.owner, run), self._emitted_until.get(_file_key(run), 0)
            for entry in entries:
                at = parse_time_ns(entry.time)
                if at > before:
                    self._emitted_until[_file_key(run)] = max(at, self._emitted_until.get(_file_key(run), 0))
                    await self._emit(log_line(source, entry))

    def _is_followed(self, run: ContainerRun) -> bool:
        """Leaves out files of deleted pods, which get no more lines, and of earlier workloads of the same name."""
        owner, container = self._filter.owner, self._filter.container
        if (
            not run.is_volume_file
            or run.created < owner.created
            or (run.pod_deleted_at and _file_key(run) not in self._emitted_until)
        ):
            return False
        return container in ("", run.container) and self._filter.matches(stored_source(owner, run))

    @property
    def _project_and_name(self) -> tuple[str, str]:
        return self._filter.project, self._filter.owner.name


def _file_key(run: ContainerRun) -> FileKey:
    return run.uid, run.container
