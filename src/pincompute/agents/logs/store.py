"""Log store: a file per container run, `PROJECT/WORKLOAD/POD_UID/CONTAINER/RUN.log`, kept after its pod is deleted."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from pincompute.agents.logs import lines
from pincompute.agents.logs.pods import PodRecord, PodRegistry, pod_record
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.retention import RetentionLimits, StoredStream, plan_retention
from pincompute.agents.logs.stream_file import StreamFile
from pincompute.agents.logs.subscribers import Subscribers
from pincompute.api.logs import ContainerRun, LogBatch, LogEntry
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_FULL
from pincompute.objects.times import format_time, parse_time_ns
from pincompute.planning.pods.container_runs import LoggedPod

SHORTENED_STREAM_BYTES = 256 << 10
"""Assumed size of a shortened stream, for the plan of retention."""
_POD_FILE = "pod.json"
_SAFE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")

log = structlog.get_logger()


class LogStore:
    """Stores batches of shippers and reads lines of workloads. All its methods are called by one thread."""

    def __init__(
        self,
        folder: Path,
        limits: RetentionLimits = RetentionLimits(),  # noqa: B008  (a value that never changes)
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.pods = PodRegistry()
        self.subscribers = Subscribers()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._limits = limits
        self._free = free
        self._open_streams: dict[Stream, StreamFile] = {}
        self._free_bytes: int | None = None
        """Bytes that can still be accepted; unknown before the first run of retention."""
        self._unwritten: dict[str, PodRecord] = {}
        """Records that could not be written, by uid of the pod; retried with each run of retention."""

    def position(self, stream: Stream, pod: PodRecord) -> Position:
        return self._open_stream(stream, pod).position

    @property
    def nearly_full(self) -> bool:
        """Whether retention should run before its next interval."""
        return self._free_bytes is not None and self._free_bytes < self._limits.headroom_bytes // 2

    def append(self, batch: Batch, pod: PodRecord) -> tuple[bool, Position]:
        """Whether the batch was stored, and the stream's position. Refused if the store is full."""
        if self._free_bytes is not None and len(batch.lines) > self._free_bytes:
            raise Refused(_logs_full("the size limit is reached"))
        stream_file = self._open_stream(batch.stream, pod)
        try:
            if not stream_file.path.parent.exists():
                stream_file.path.parent.mkdir(parents=True)
                self._write_record(pod)
            stored = stream_file.append(batch)
        except OSError as error:
            # Another program has filled the disk since the last run of retention.
            self._free_bytes = 0
            raise Refused(_logs_full(error.strerror or str(error))) from error
        if stored and self._free_bytes is not None:
            self._free_bytes -= len(batch.lines)
        run = _container_run(pod, batch.stream.container, batch.stream.restart)
        if stored and run.is_volume_file and self.subscribers.has_subscribers(pod.project, pod.workload):
            self.subscribers.publish(pod.project, pod.workload, LogBatch(run, _parse_entries(batch.lines.split(b"\n"))))
        return stored, stream_file.position

    def observe_pod(self, pod: LoggedPod) -> None:
        """Updates the record of a pod, also on disk if the pod has stored lines."""
        before = self._find_record(pod)
        record = self.pods.observe(pod)
        if record != before and self._record_path(record).exists():
            self._write_record(record)

    def mark_pod_deleted(self, pod: LoggedPod, now: datetime) -> None:
        self._find_record(pod)
        record = self.pods.mark_deleted(pod, format_time(now))
        if self._record_path(record).exists():
            self._write_record(record)
        for stream in [each for each in self._open_streams if each.uid == record.uid]:
            del self._open_streams[stream]

    def mark_missing_pods_deleted(self, now: datetime) -> None:
        """Marks pods that were deleted while this process did not run. Call it once all existing pods are observed."""
        for record in list(self._stored_records()):
            if not record.deleted_at and self.pods.get(record.uid) is None:
                self._write_record(msgspec.structs.replace(record, deleted_at=format_time(now)))

    def container_runs(self, project: str, workload: str) -> list[ContainerRun]:
        """All stored runs of a workload, also of a deleted one."""
        found: list[ContainerRun] = []
        for pod in sorted(_folders(self._folder / _check_name(project) / _check_name(workload))):
            record = _read_record(pod)
            if record is None:
                continue
            for container in sorted(_folders(pod)):
                found += [_container_run(record, container.name, each) for each in sorted(_run_numbers(container))]
        return found

    def read_entries(self, project: str, workload: str, run: ContainerRun, *, tail: int, since: int) -> list[LogEntry]:
        """The last lines of a run. Lines that the container runtime has split are joined."""
        workload_folder = self._folder / _check_name(project) / _check_name(workload)
        pod = workload_folder / f"{_check_name(run.pod)}_{_check_name(run.uid)}"
        stream_file = StreamFile(pod / _check_name(run.container) / f"{run.restart}.log")
        found = [each for each in _parse_entries(stream_file.tail()) if not since or parse_time_ns(each.time) > since]
        return found[-tail:] if tail else []

    def enforce_retention(self, now: datetime) -> None:
        """Removes and shortens streams by the limits, and by the free disk space if other programs use the disk."""
        stored = [*self._stored_streams(now)]
        limits = self._limits._replace(total_bytes=self._usable_bytes(stored))
        plan = plan_retention(stored, limits, SHORTENED_STREAM_BYTES)
        # Removal goes first, because shortening needs some space for a new file.
        for stream in plan.to_remove:
            self._remove_stream(stream)
        for stream in plan.to_shorten:
            with _log_errors("log shorten failed"):
                self._stream_file(stream).shorten(self._limits.min_lines)
        for record in list(self._unwritten.values()):
            self._write_record(record)
        remaining = [*self._stored_streams(now)]
        self._free_bytes = self._usable_bytes(remaining) - sum(each.size_bytes for each in remaining)
        if plan.to_shorten or plan.to_remove:
            log.info("retention enforced", shortened=len(plan.to_shorten), removed=len(plan.to_remove))

    def _usable_bytes(self, stored: Sequence[StoredStream]) -> int:
        """Total size that the streams may have, by the limits and the disk."""
        used = sum(each.size_bytes for each in stored)
        return min(self._limits.total_bytes, max(0, used + self._free(self._folder) - self._limits.reserve_bytes))

    def _remove_stream(self, stream: StoredStream) -> None:
        """Removes the files of a stream, and the folder of its pod with the last one."""
        stream_file = self._stream_file(stream)
        stream_file.path.unlink(missing_ok=True)
        stream_file.rotated_path.unlink(missing_ok=True)
        _remove_empty_folders(stream_file.path.parent, self._folder)

    def _stored_streams(self, now: datetime) -> Iterator[StoredStream]:
        for pod in self._pod_folders():
            record = _read_record(pod)
            deleted_at = record.deleted_at if record else ""
            deleted_for_s = now.timestamp() - parse_time_ns(deleted_at) / 1e9 if deleted_at else -1.0
            for container in _folders(pod):
                for number in _run_numbers(container):
                    stream_file = StreamFile(container / f"{number}.log")
                    path = str(stream_file.path.relative_to(self._folder))
                    size_bytes = stream_file.size_bytes()
                    yield StoredStream(path, pod.name, container.name, number, size_bytes, deleted_for_s)

    def _stream_file(self, stream: StoredStream) -> StreamFile:
        """The open file of a stream, whose position must stay current, or a new one."""
        path = self._folder / stream.relative_path
        return next((each for each in self._open_streams.values() if each.path == path), None) or StreamFile(path)

    def _open_stream(self, stream: Stream, pod: PodRecord) -> StreamFile:
        stream_file = self._open_streams.get(stream)
        if stream_file is None:
            path = self._record_path(pod).parent / _check_name(stream.container) / f"{stream.restart}.log"
            stream_file = self._open_streams[stream] = StreamFile(path)
        return stream_file

    def _record_path(self, pod: PodRecord) -> Path:
        workload = self._folder / _check_name(pod.project) / _check_name(pod.workload)
        return workload / f"{_check_name(pod.name)}_{_check_name(pod.uid)}" / _POD_FILE

    def _write_record(self, record: PodRecord) -> None:
        """Writes the record now or later: a full disk must not end the process."""
        path = self._record_path(record)
        fresh = path.with_suffix(".new")
        self._unwritten[record.uid] = record
        with _log_errors("pod record write failed"):
            fresh.write_bytes(msgspec.json.encode(record))
            fresh.replace(path)
            del self._unwritten[record.uid]

    def _find_record(self, pod: LoggedPod) -> PodRecord | None:
        """Previous record of a pod, from memory or from the files of an earlier process."""
        before = self.pods.get(pod.metadata.uid)
        if before is None:
            before = _read_record(self._record_path(pod_record(pod, None)).parent)
            if before is not None:
                self.pods.restore(before)
        return before

    def _pod_folders(self) -> Iterator[Path]:
        for project in _folders(self._folder):
            for workload in _folders(project):
                yield from _folders(workload)

    def _stored_records(self) -> Iterator[PodRecord]:
        return (each for each in map(_read_record, self._pod_folders()) if each)


@contextmanager
def _log_errors(event: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        log.error(event, why=error.strerror or str(error))


def _logs_full(why: str) -> Problem:
    return Problem(LOGS_FULL, "the log store is full", note=why, next="free disk space")


def _container_run(pod: PodRecord, container: str, number: int) -> ContainerRun:
    return ContainerRun(
        pod=pod.name, uid=pod.uid, container=container, restart=number, labels=pod.labels, main_container=pod.main,
        created=pod.created, pod_deleted_at=pod.deleted_at, end=pod.ends.get(container, {}).get(number),
    )  # fmt: skip


def _parse_entries(stored: Iterable[bytes]) -> list[LogEntry]:
    return [*join_partial_lines(each for each in map(lines.parse_line, stored) if each)]


def join_partial_lines(partial_lines: Iterator[lines.LogLine]) -> Iterator[LogEntry]:
    """Joins partial lines. Parts of one line are consecutive within their stream, stdout or stderr."""
    unfinished: dict[str, list[str]] = {}
    time = ""
    for line in partial_lines:
        time = line.time
        unfinished.setdefault(line.stream, []).append(line.text)
        if line.complete:
            yield LogEntry(time, "".join(unfinished.pop(line.stream)))
    for parts in unfinished.values():
        yield LogEntry(time, "".join(parts))


def _check_name(name: str) -> str:
    """The name, if it is a safe file name. Users choose names of volume files, which must not leave the folder."""
    if not _SAFE_NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{name!r} must be a name without slashes")
    return name


def _read_record(pod: Path) -> PodRecord | None:
    try:
        return msgspec.json.decode((pod / _POD_FILE).read_bytes(), type=PodRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _folders(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if each.is_dir()]
    except FileNotFoundError:
        return []


def _run_numbers(container: Path) -> set[int]:
    found = (each.name.partition(".log")[0] for each in container.iterdir())
    return {int(each) for each in found if each.isdigit()}


def _remove_empty_folders(container: Path, root: Path) -> None:
    """Removes the container's folder and the folders above it, as far as they are empty."""
    pod = container.parent
    if not any(container.iterdir()):
        container.rmdir()
    if not _folders(pod):
        shutil.rmtree(pod, ignore_errors=True)
    for folder in (pod.parent, pod.parent.parent):
        if folder != root and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
