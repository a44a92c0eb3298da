"""Reads the last log lines of a workload: all replicas and runs merged into one stream, deleted pods included."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from functools import partial

from pincompute.api.logs import ContainerRun, LogEntry, LogItem, LogLine, LogMarker, LogQuery, LogReplicas, RunSelector
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.aio import beside_loop
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NO_LOGS, REPLICA_UNKNOWN
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, NotFound
from pincompute.kube.resource import PODS
from pincompute.objects.times import parse_time_ns
from pincompute.planning.pods.container_runs import LoggedPod
from pincompute.platforms.kubernetes.logs.container_runs import (
    ContainerHistory,
    LogOwner,
    LogSource,
    container_histories,
)
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient

MAX_CONTAINERS = 50
"""Containers that are read at once. A batch may have thousands."""
MAX_LINES_PER_READ = 100_000
MAX_QUICK_RUNS = 1_000
MAX_QUICK_LINES = 10_000
"""More are sorted beside the event loop: a project has up to 20,000 streams of logs."""
MAX_BYTES_PER_READ = 16 << 20
"""Text of all containers of one read; older lines are left out."""
MIN_BYTES_PER_RUN = 64 << 10
_LINE_BYTES = 200
"""Memory of one line beside its text."""
MAX_NAMED_REPLICAS = 20
"""Replicas that a message lists."""

TimedItem = tuple[int, LogItem]
"""An item with its time in nanoseconds since 1970, by which the streams are merged."""


def _require_container(
    project: str, name: str, pods: Sequence[LoggedPod], stored: Sequence[ContainerRun], container: str
) -> None:
    """Refuse a container that no pod has. One that has not printed yet, or a file that may come, is no error."""
    known = {each.name for pod in pods for each in pod.spec.all_containers} | {run.container for run in stored}
    if known and container not in known:
        what = f"{name} has no container or log file '{container}'"
        note = f"its containers and log files: {', '.join(sorted(known)[:MAX_NAMED_REPLICAS])}"
        raise Refused(Problem(NO_LOGS, what, Where(object=f"{project}/{name}"), note, f"pin logs {name}"))


class LogReader:
    """Reads from the kubelet while a pod exists, as it has a line first, and from the log store otherwise."""

    def __init__(self, client: Client, store: LogStoreClient | None) -> None:
        self._client = client
        self.store = store
        """None in a cluster without a log store."""

    async def stored_runs(self, project: str, name: str) -> tuple[list[ContainerRun], str]:
        """The runs in the store, or why it cannot be read. Without the store, existing pods can still be read."""
        try:
            return (await self.store.list_runs(project, name) if self.store else []), ""
        except Refused as refused:
            return [], refused.problems[0].what

    async def find_histories(
        self, project: str, owner: LogOwner, runs: tuple[Sequence[LoggedPod], Sequence[ContainerRun]], query: LogQuery
    ) -> tuple[list[ContainerHistory], list[ContainerHistory]]:
        """All histories of existing pods and of stored runs, and those that a query asks for."""
        pods, stored = runs

        def find() -> tuple[list[ContainerHistory], list[ContainerHistory]]:
            found = container_histories(owner, pods, stored, query.container)
            if not found and query.container and not query.follow:
                _require_container(project, owner.name, pods, stored, query.container)
            return found, self.select(project, found, owner, query)

        return await beside_loop(find, large=len(pods) + len(stored) > MAX_QUICK_RUNS)

    def select(
        self, project: str, histories: Sequence[ContainerHistory], owner: LogOwner, query: LogQuery
    ) -> list[ContainerHistory]:
        """The histories that a query asks for. If there are too many, failed containers take precedence."""
        chosen = [
            each for each in histories if not query.replica or query.replica in (each.replica, each.sources[-1].run.pod)
        ]
        if query.replica and not chosen:
            raise self._unknown_replica(project, histories, owner, query)
        if not query.replica and not query.include_deleted:
            # By identity: comparing each with all hidden ones takes minutes for thousands of pods.
            hidden = {id(each) for each in owner.terminated_hidden(chosen)}
            chosen = [each for each in chosen if id(each) not in hidden]
        if query.previous:
            chosen = [ContainerHistory(each.sources[-2:-1]) for each in chosen if len(each.sources) > 1]
            if not chosen:
                what = f"no container of {project}/{owner.name} has restarted"
                raise Refused(Problem(NO_LOGS, what, next=f"pin logs {owner.name}"))
        if query.select_run:
            return _select_one(chosen, query.select_run)
        return sorted(chosen, key=lambda each: (not each.failed, each.sources[-1].stored))[:MAX_CONTAINERS]

    async def read_tail(
        self, project: str, owner: LogOwner, histories: Sequence[ContainerHistory], query: LogQuery
    ) -> list[TimedItem]:
        """The last lines of all histories, merged by time, with markers where a run ended."""
        max_bytes = max(MIN_BYTES_PER_RUN, MAX_BYTES_PER_READ // max(1, len(histories)))
        tails = await asyncio.gather(
            *(self._read_history(project, owner, each, query, max_bytes) for each in histories)
        )
        merged = heapq.merge(*tails, key=lambda each: each[0])
        return await beside_loop(partial(list, merged), large=sum(map(len, tails)) > MAX_QUICK_LINES)

    async def _read_history(
        self, project: str, owner: LogOwner, history: ContainerHistory, query: LogQuery, max_bytes: int
    ) -> list[TimedItem]:
        """Reads from the last run backwards until there are enough lines, or as many bytes as fit."""
        parts: list[list[TimedItem]] = []
        remaining = query.tail
        for index in range(len(history.sources) - 1, -1, -1):
            lines = keep_last(
                await self._read_run(project, owner, history.sources[index], remaining, query.since, max_bytes),
                max_bytes,
            )
            max_bytes -= sum(map(_size_bytes, lines))
            marker = history.end_mark(index)
            parts.append(lines + _timed_marker(marker, lines, query.since))
            remaining -= len(lines)
            if remaining <= 0 or max_bytes < MIN_BYTES_PER_RUN // 2:
                break
        return _keep_order(each for part in reversed(parts) for each in part)

    async def _read_run(  # noqa: PLR0913, PLR0917  (a run of a workload, and its limits)
        self, project: str, owner: LogOwner, source: LogSource, tail: int, since: int, max_bytes: int
    ) -> list[TimedItem]:
        if source.stored:
            return await self._read_stored(project, owner, source, tail, since)
        try:
            stream = self._client.logs(
                project,
                source.run.pod,
                container=source.run.container,
                tail=tail,
                previous=source.previous,
                timestamps=True,
            )
            async with aclosing(stream) as lines:
                window = LineWindow(max_bytes)
                async for line in lines:
                    read = parse_log_line(source, line)
                    if read[0] > since:
                        window.add(read)
                found = list(window.items)
                if found or not (source.run.end and self.store):
                    return found
                # The run has ended and the kubelet returned nothing: it may have deleted the lines already.
                return await self._read_stored(project, owner, source, tail, since)
        except ApiError as error:
            if self.store:
                # The pod was deleted since it was listed, or its node does not respond.
                return await self._read_stored(project, owner, source, tail, since)
            # A marker instead of an error: one unreadable replica must not hide the lines of the others.
            text = "pod deleted" if isinstance(error, NotFound) else f"cannot be read: {error.problems[0].what}"
            return [(0, LogMarker(source.replica, "", text))]

    async def _read_stored(
        self, project: str, owner: LogOwner, source: LogSource, tail: int, since: int
    ) -> list[TimedItem]:
        assert self.store
        entries = await self.store.read_lines(project, owner.name, source.run, tail=tail, since=since)
        return [(parse_time_ns(each.time), log_line(source, each)) for each in entries]

    def _unknown_replica(
        self, project: str, histories: Sequence[ContainerHistory], owner: LogOwner, query: LogQuery
    ) -> Refused:
        names = sorted({each.replica for each in histories}, key=lambda each: (len(each), each))
        more = f" and {len(names) - MAX_NAMED_REPLICAS} more" if len(names) > MAX_NAMED_REPLICAS else ""
        listed = ", ".join(names[:MAX_NAMED_REPLICAS]) + more
        no_store = "" if self.store else "; this cluster has no log store, so logs of deleted pods are lost"
        what = f"{owner.name} has no logs of a replica '{query.replica}'"
        note = (f"replicas with logs: {listed}" if names else "no replica has run") + no_store
        return Refused(Problem(REPLICA_UNKNOWN, what, Where(object=f"{project}/{owner.name}"), note))


class LineWindow:
    """The last lines of a stream, bounded in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.items: deque[TimedItem] = deque()
        self._max_bytes = max_bytes
        self._size_bytes = 0

    def add(self, item: TimedItem) -> None:
        self.items.append(item)
        self._size_bytes += _size_bytes(item)
        # The last line stays, however long it is.
        while self._size_bytes > self._max_bytes and len(self.items) > 1:
            self._size_bytes -= _size_bytes(self.items.popleft())


def keep_last(items: Iterable[TimedItem], max_bytes: int) -> list[TimedItem]:
    window = LineWindow(max_bytes)
    for item in items:
        window.add(item)
    return list(window.items)


def _size_bytes(item: TimedItem) -> int:
    return _LINE_BYTES + (len(item[1].text) if isinstance(item[1], LogLine) else 0)


async def list_pods_of_workload(client: Client, project: str, name: str) -> list[LoggedPod]:
    """Pods of a workload that exist, decoded into the fields that logs need."""
    return (await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}={name}", type=LoggedPod)).items


def _select_one(histories: Sequence[ContainerHistory], selector: RunSelector) -> list[ContainerHistory]:
    """The container that failed last or, if none has failed, the youngest."""
    by_age = sorted(histories, key=lambda each: each.sources[-1].run.created)
    failed = sorted((each for each in by_age if each.last_failure_at), key=lambda each: each.last_failure_at)
    return (failed if selector == "ended" and failed else by_age)[-1:]


def list_replica_names(histories: Iterable[ContainerHistory]) -> LogReplicas:
    """The item that announces which replicas follow."""
    return LogReplicas(list(dict.fromkeys(each.replica for each in histories)))


def parse_log_line(source: LogSource, line: str) -> TimedItem:
    """Splits a line of the API server into its timestamp and text."""
    time, _, text = line.partition(" ")
    try:
        return parse_time_ns(time), _new_line(source, time, text)
    except ValueError:
        return 0, _new_line(source, "", line)


def log_line(source: LogSource, entry: LogEntry) -> LogLine:
    return _new_line(source, entry.time, entry.text)


def _new_line(source: LogSource, time: str, text: str) -> LogLine:
    return LogLine(source.replica, time, text, source.container_label)


def _timed_marker(marker: LogMarker | None, lines: list[TimedItem], since: int) -> list[TimedItem]:
    """Places a marker after the last line. Exit times have whole seconds, so by time it might come before that line."""
    if marker is None:
        return []
    at = max(parse_time_ns(marker.time) if marker.time else 0, lines[-1][0] if lines else 0)
    return [(at, marker)] if at > since else []


def _keep_order(items: Iterable[TimedItem]) -> list[TimedItem]:
    """Raises times so that they never decrease: runs follow one another even if the clock of a node was set back."""
    ordered: list[TimedItem] = []
    latest = 0
    for at, item in items:
        latest = max(latest, at)
        ordered.append((latest, item))
    return ordered
