"""Follows the log lines of a workload across restarts of containers, new replicas and broken connections.

A watch of the workload's pods discovers container runs. Each container has a task of its own that streams one run after
the other, so that the marker "ended" comes after the last line of its run. All tasks put items into one bounded queue:
a client that reads slowly slows down the streams, and memory does not grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from pincompute.api.logs import LogItem, LogLine, LogMarker, LogReplicas
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Gone, Unreachable
from pincompute.kube.resource import PODS
from pincompute.kube.watch import DELETED
from pincompute.objects.times import format_time
from pincompute.planning.pods.container_runs import LoggedPod, exit_text
from pincompute.platforms.kubernetes.logs.container_runs import ContainerHistory, LogFilter, LogSource, live_sources
from pincompute.platforms.kubernetes.logs.lines import TimedItem, parse_log_line
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient
from pincompute.platforms.kubernetes.logs.volume_files import VolumeFileFollower

RETRY_DELAY_S = 2.0
"""Delay before a stream or watch is reopened; within it a pod usually reports the end of a run."""
DRAIN_POLL_S = 0.2
POD_POLL_S = 0.5
MAX_BUFFERED_ITEMS = 1000
"""Items that are read ahead of the client."""
_ENDED_PHASES = ("Succeeded", "Failed")


class _ContainerStream:
    """The state of one container in one pod. Runs are identified by their restart count."""

    def __init__(self, since: int) -> None:
        self.since = since
        """Time of the last emitted line, in nanoseconds."""
        self.announced: set[int] = set()
        """Runs that were announced to the client."""
        self.started: set[int] = set()
        """Runs that were queued for streaming or read before."""
        self.ended: set[int] = set()
        self.pod_deleted = False
        self.changed = asyncio.Event()
        """Set when a run has ended or the pod was deleted."""
        self.queue: asyncio.Queue[LogSource | LogMarker] = asyncio.Queue()
        """Runs to stream and markers to emit, in order."""
        self.busy = False


class LogFollower:
    """Continues after the lines that `resume_after` names. Files of log volumes are followed through the log store."""

    def __init__(self, client: Client, store: LogStoreClient | None, log_filter: LogFilter) -> None:
        self._client = client
        self._filter = log_filter
        self._labels = f"{WORKLOAD_LABEL}={log_filter.owner.name}"
        self._files = VolumeFileFollower(store, client.clock, log_filter, self._emit_of_file) if store else None
        self._streams: dict[tuple[str, str], _ContainerStream] = {}
        """By uid of the pod and name of the container."""
        self._replicas: list[str] = []
        """Replicas that were announced to the client."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._items: asyncio.Queue[LogItem | Refused | None] = asyncio.Queue(maxsize=MAX_BUFFERED_ITEMS)
        """None ends the stream."""

    def resume_after(self, histories: Iterable[ContainerHistory], items: Iterable[TimedItem], since: int) -> None:
        """Marks lines as emitted, so that following starts right after them."""
        latest: dict[tuple[str, str], int] = {}
        for at, item in items:
            if isinstance(item, LogLine):
                latest[item.replica, item.container] = at
        for history in histories:
            last = history.sources[-1]
            run, emitted_until = last.run, max(since, latest.get((history.replica, last.container_label), 0))
            if self._files and run.is_volume_file:
                self._files.resume_after(run, emitted_until)
            stream = self._stream_of((run.uid, run.container), emitted_until)
            ended = {source.run.restart for source in history.sources if source.run.end}
            stream.announced |= {source.run.restart for source in history.sources}
            stream.started |= ended
            stream.ended |= ended
            if history.replica not in self._replicas:
                self._replicas.append(history.replica)

    async def run(self, workload_ended: Awaitable[None]) -> AsyncGenerator[LogItem]:
        """Yields items until the workload has ended and all its lines were emitted."""
        self._start(self._watch_pods())
        if self._files:
            self._start(self._files.run())
        self._start(self._finish(workload_ended))
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Refused):
                    raise item
                yield item
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch_pods(self) -> None:
        """Discovers runs in all pods of the workload. A watch that ends is started again."""
        while True:
            try:
                changes = self._client.watch(PODS, self._filter.project, labels=self._labels, type=LoggedPod)
                async with aclosing(changes) as events:
                    async for event in events:
                        await self._on_pod(event.object, deleted=event.type == DELETED)
            except (Gone, Unreachable):
                # The next watch starts with all pods that exist by then, so nothing is missed.
                pass
            except ApiError as error:
                await self._items.put(error)
            await self._client.clock.sleep(RETRY_DELAY_S)

    async def _on_pod(self, pod: LoggedPod, *, deleted: bool) -> None:
        for source in live_sources(self._filter.owner, pod, self._filter.container):
            if self._filter.matches(source):
                await self._on_run(source)
        if deleted:
            for (uid, _), stream in self._streams.items():
                if uid == pod.metadata.uid and not stream.pod_deleted:
                    stream.pod_deleted = True
                    stream.changed.set()

    async def _on_run(self, source: LogSource) -> None:
        """Queues a run that is new, and a marker for one that has ended."""
        run = source.run
        stream = self._stream_of((run.uid, run.container), 0)
        await self._announce_replica(source.replica)
        if run.restart not in stream.started:
            if stream.announced - {run.restart} and run.restart not in stream.announced:
                stream.queue.put_nowait(LogMarker(source.replica, "", "restarted"))
            stream.announced.add(run.restart)
            stream.started.add(run.restart)
            stream.queue.put_nowait(source)
        if run.end and run.restart not in stream.ended:
            stream.ended.add(run.restart)
            stream.changed.set()
            stream.queue.put_nowait(LogMarker(source.replica, run.end.at, f"ended: {exit_text(run.end)}"))

    async def _announce_replica(self, replica: str) -> None:
        if replica and replica not in self._replicas:
            self._replicas.append(replica)
            await self._items.put(LogReplicas(list(self._replicas)))

    async def _emit_of_file(self, item: LogLine | LogMarker) -> None:
        await self._announce_replica(item.replica)
        await self._items.put(item)

    def _stream_of(self, key: tuple[str, str], since: int) -> _ContainerStream:
        if key not in self._streams:
            self._streams[key] = _ContainerStream(since)
            self._start(self._emit_stream(self._streams[key]))
        return self._streams[key]

    async def _emit_stream(self, stream: _ContainerStream) -> None:
        """Handles the queue of one container in order, so that a marker follows the last line of its run."""
        while True:
            queued = await stream.queue.get()
            stream.busy = True
            if isinstance(queued, LogMarker):
                await self._items.put(queued)
            else:
                await self._read_run(stream, queued)
            stream.busy = False

    async def _read_run(self, stream: _ContainerStream, source: LogSource) -> None:
        """Streams a run until it has ended. A stream that breaks off before is resumed after its last line."""
        while True:
            stream.changed.clear()
            with suppress(ApiError):
                await self._read_stream(stream, source)
            if source.run.restart in stream.ended or stream.pod_deleted:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_DELAY_S):
                    await stream.changed.wait()

    async def _read_stream(self, stream: _ContainerStream, source: LogSource) -> None:
        since = format_time(datetime.fromtimestamp(stream.since // 1_000_000_000, UTC)) if stream.since else ""
        response = self._client.logs(
            self._filter.project, source.run.pod, container=source.run.container, previous=source.previous,
            follow=True, since=since, timestamps=True,
        )  # fmt: skip
        async with aclosing(response) as lines:
            async for line in lines:
                at, item = parse_log_line(source, line)
                # `since` has whole seconds, so the server repeats the lines of the last second.
                if at > stream.since:
                    stream.since = at
                    await self._items.put(item)

    async def _finish(self, workload_ended: Awaitable[None]) -> None:
        """Ends the stream of items once the workload has ended and every queue is empty."""
        await workload_ended
        while any(each.busy or not each.queue.empty() for each in self._streams.values() if not each.pod_deleted):
            await self._client.clock.sleep(DRAIN_POLL_S)
        if self._files:
            await self._read_last_file_lines(self._files)
        await self._items.put(None)

    async def _read_last_file_lines(self, files: VolumeFileFollower) -> None:
        """The last lines of a file are shipped when its program has ended, and the pod ends only after that."""
        with suppress(ApiError):
            while any(pod.status.phase not in _ENDED_PHASES for pod in await self._list_pods()):
                await self._client.clock.sleep(POD_POLL_S)
        with suppress(Refused):
            await files.catch_up()

    async def _list_pods(self) -> list[LoggedPod]:
        return (await self._client.list(PODS, self._filter.project, labels=self._labels, type=LoggedPod)).items

    def _start(self, work: Awaitable[None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))  # type: ignore[arg-type]
