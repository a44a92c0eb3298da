"""Log store: a file per container run, `PROJECT/WORKLOAD/POD_UID/CONTAINER/RUN.log`, kept after its pod is deleted."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from pincompute.agents.logs.accepted_lines import accepted_lines
from pincompute.agents.logs.namespaces import Namespace, Namespaces
from pincompute.agents.logs.pods import PodRecord, PodRegistry, pod_record
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.retention import RetentionLimits, RetentionPlan, StoredStream, plan_retention
from pincompute.agents.logs.stored_lines import last_lines, parse_entries
from pincompute.agents.logs.stream_file import StreamFile
from pincompute.agents.logs.stream_index import IndexedPod, RunKey, StreamIndex
from pincompute.agents.logs.subscribers import Subscribers
from pincompute.api.logs import ContainerRun, LogBatch, LogEntry
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_FULL
from pincompute.objects.times import format_time, parse_time_ns
from pincompute.planning.pods.container_runs import LoggedPod

MAX_READ_BYTES = 4 << 20
"""Text that one read returns at most; older lines are left out."""
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
        clock: Clock | None = None,
    ) -> None:
        self.pods = PodRegistry()
        self.namespaces = Namespaces()
        self.subscribers = Subscribers()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._limits = limits
        self._free = free
        self._clock = clock or SystemClock()
        self._usable_bytes: int | None = None
        """Total size that the streams may have; unknown before the first run of retention."""
        self.batch_counts: Counter[bool] = Counter()
        """Batches since the start by whether they were stored; else their shipper continues at another position."""
        self.stored_bytes = 0
        """Bytes of the stored batches since the start."""
        self.disk_full = False
        """Whether the disk had less space than expected, so that retention should run before its next interval."""
        self._unwritten: dict[str, PodRecord] = {}
        """Records that could not be written, by uid of the pod; retried with each run of retention."""
        self._index = StreamIndex()
        self._read_index()

    def position(self, stream: Stream, pod: PodRecord) -> Position:
        indexed = self._index.find(pod.uid, (stream.container, stream.restart))
        # An unknown stream is not remembered: a pod may ask for any number of names.
        return indexed.file.position if indexed else StreamFile(self._path_of(stream, pod)).position

    def append(self, batch: Batch, pod: PodRecord) -> tuple[bool, Position]:
        """Whether the batch was stored, and the stream's position. Refused if the disk is full."""
        self._make_room(len(batch.lines))
        run = (batch.stream.container, batch.stream.restart)
        indexed = self._index.find(pod.uid, run)
        stream_file = indexed.file if indexed else StreamFile(self._path_of(batch.stream, pod))
        try:
            if not stream_file.path.parent.exists():
                stream_file.path.parent.mkdir(parents=True)
                self._write_record(pod)
            stored = stream_file.append(batch)
        except OSError as error:
            # Another program has filled the disk since the last run of retention.
            self.disk_full = True
            self._usable_bytes = self._index.size_bytes
            raise Refused(_logs_full(error.strerror or str(error))) from error
        self.batch_counts[stored] += 1
        if stored:
            self.stored_bytes += len(batch.lines)
            deleted_at = parse_time_ns(pod.deleted_at) / 1e9 if pod.deleted_at else None
            of_pod = self._index.add_pod(pod.project, pod.uid, self._record_path(pod).parent, deleted_at)
            self._index.set_size(of_pod, run, stream_file, stream_file.size_bytes())
            self._enforce_limits_of(of_pod)
            self._publish(batch, pod)
        return stored, stream_file.position

    def observe_pod(self, pod: LoggedPod) -> None:
        """Updates the record of a pod, also on disk if the pod has stored lines."""
        before = self._find_record(pod)
        record = self.pods.observe(pod, self._namespace_uid(pod))
        if record != before and self._record_path(record).exists():
            self._write_record(record)

    def mark_pod_deleted(self, pod: LoggedPod, now: datetime) -> None:
        self._find_record(pod)
        record = self.pods.mark_deleted(pod, format_time(now), self._namespace_uid(pod))
        if self._record_path(record).exists():
            self._write_record(record)
        if record.uid in self._index.pods:
            self._index.pods[record.uid].deleted_at = now.timestamp()

    def mark_missing_pods_deleted(self, now: datetime) -> None:
        """Marks pods that were deleted while this process did not run. Call it once all existing pods are observed."""
        for pod in self._index.pods.values():
            record = _read_record(pod.folder)
            if record and not record.deleted_at and self.pods.get(record.uid) is None:
                self._write_record(msgspec.structs.replace(record, deleted_at=format_time(now)))
                pod.deleted_at = now.timestamp()

    def observe_namespace(self, namespace: Namespace) -> None:
        if replaced := self.namespaces.observe(namespace):
            self._remove_namespace(namespace.metadata.name, replaced)

    def remove_namespace(self, namespace: Namespace) -> None:
        """Removes the logs of a deleted project, which nobody can read any more."""
        self.namespaces.forget(namespace)
        self._remove_namespace(namespace.metadata.name, namespace.metadata.uid)

    def remove_former_projects(self) -> None:
        """Removes the logs of projects that were deleted while this process did not run."""
        for project in list(self._index.projects):
            self._remove_unowned(project)

    def container_runs(self, project: str, workload: str) -> list[ContainerRun]:
        """All stored runs of a workload, also of a deleted one."""
        found: list[ContainerRun] = []
        for pod in sorted(_folders(self._folder / _check_name(project) / _check_name(workload))):
            record = _read_record(pod)
            if record is None or not self.namespaces.owns(record):
                continue
            for container in sorted(_folders(pod)):
                found += [_container_run(record, container.name, each) for each in sorted(_run_numbers(container))]
        return found

    def read_entries(  # noqa: PLR0913  (keyword-only)
        self,
        project: str,
        workload: str,
        run: ContainerRun,
        *,
        tail: int,
        since: int,
        max_bytes: int = MAX_READ_BYTES,
    ) -> list[LogEntry]:
        """The last lines of a run. Lines that the container runtime has split are joined."""
        workload_folder = self._folder / _check_name(project) / _check_name(workload)
        pod = workload_folder / f"{_check_name(run.pod)}_{_check_name(run.uid)}"
        record = _read_record(pod)
        if not tail or (record is not None and not self.namespaces.owns(record)):
            return []
        stream_file = StreamFile(pod / _check_name(run.container) / f"{run.restart}.log")
        found = parse_entries(last_lines(stream_file, tail, min(max_bytes, MAX_READ_BYTES)))
        return [each for each in found if not since or parse_time_ns(each.time) > since][-tail:]

    def enforce_retention(self, now: datetime) -> None:
        """Removes and shortens streams by the limits, and by the free disk space if other programs use the disk."""
        self._usable_bytes = self._measure_usable_bytes()
        self._apply(self._index.stored(now.timestamp()))
        for record in list(self._unwritten.values()):
            self._write_record(record)
        self._usable_bytes = self._measure_usable_bytes()
        self.disk_full = False

    def _make_room(self, count: int) -> None:
        """Frees space for a batch if the store is full, where most is used."""
        if self._usable_bytes is None or self._index.size_bytes + count <= self._usable_bytes:
            return
        if not self.disk_full:
            self._usable_bytes = self._measure_usable_bytes()
            limits = self._limits._replace(total_bytes=max(0, self._usable_bytes - count))
            self._apply(self._index.stored(self._clock.now().timestamp()), limits)
        if self._index.size_bytes + count > self._usable_bytes:
            # The next run of retention tries again; a plan for each refused batch would cost too much.
            self.disk_full = True
            raise Refused(_logs_full("the disk has no more space for logs"))

    def _enforce_limits_of(self, pod: IndexedPod) -> None:
        """Enforces the limits of a pod, its project and the number of streams right after a write."""
        limits, project, now_s = self._limits, self._index.projects[pod.project], self._clock.now().timestamp()
        if self._index.stream_count > limits.total_streams:
            self._apply(self._index.stored(now_s))
        elif project.size_bytes > limits.project_bytes or project.stream_count > limits.project_streams:
            self._apply(self._index.stored_of_project(pod.project, now_s))
        elif pod.size_bytes > limits.pod_bytes or pod.file_count > limits.pod_files:
            self._apply(list(pod.stored(now_s)))

    def _apply(self, stored: list[StoredStream], limits: RetentionLimits | None = None) -> None:
        """Applies the limits to these streams."""
        if limits is None:
            total = self._limits.total_bytes if self._usable_bytes is None else self._usable_bytes
            limits = self._limits._replace(total_bytes=total)
        plan = plan_retention(stored, limits)
        # Removal goes first, because shortening needs some space for a new file.
        for stream in plan.to_remove:
            self._remove_stream(stream)
        for stream in plan.to_clear:
            self._shorten(stream, 0)
        for stream in plan.to_shorten:
            self._shorten(stream, self._limits.min_lines)
        _log_plan(plan)

    def _measure_usable_bytes(self) -> int:
        """Total size that the streams may have, by the limits and the disk."""
        by_disk = self._index.size_bytes + self._free(self._folder) - self._limits.reserve_bytes
        return min(self._limits.total_bytes, max(0, by_disk))

    def _shorten(self, stream: StoredStream, count: int) -> None:
        pod, run = self._index.pods[stream.pod], (stream.container, stream.restart)
        stream_file = pod.streams[run].file
        with _log_errors("log shorten failed"):
            stream_file.shorten(count, self._limits.shortened_bytes)
            self._index.resize(pod, run, stream_file.size_bytes())

    def _remove_stream(self, stream: StoredStream) -> None:
        """Removes the files of a stream, and the folder of its pod with the last one."""
        pod, run = self._index.pods[stream.pod], (stream.container, stream.restart)
        stream_file = pod.streams[run].file
        with _log_errors("log remove failed"):
            stream_file.remove()
            self._index.remove(pod, run)
            _remove_empty_folders(stream_file.path.parent, self._folder)
            if stream.pod not in self._index.pods:
                self._unwritten.pop(stream.pod, None)

    def _remove_namespace(self, project: str, uid: str) -> None:
        self.pods.forget_namespace(uid)
        self._remove_unowned(project)

    def _remove_unowned(self, project: str) -> None:
        pods = self._index.projects[project].pods.values() if project in self._index.projects else ()
        for pod in list(pods):
            record = _read_record(pod.folder)
            if record is None or not self.namespaces.owns(record):
                for stream in list(pod.stored(0)):
                    self._remove_stream(stream)

    def _publish(self, batch: Batch, pod: PodRecord) -> None:
        if batch.stream.is_file and self.subscribers.has_subscribers(pod.project, pod.workload):
            run = _container_run(pod, batch.stream.container, batch.stream.restart)
            accepted = accepted_lines(batch.lines, of_file=True)
            self.subscribers.publish(pod.project, pod.workload, LogBatch(run, parse_entries(accepted.split(b"\n"))))

    def _read_index(self) -> None:
        """Reads which streams the disk has, in the order of their last writes."""
        found: list[tuple[float, Path, RunKey]] = []
        for folder in self._pod_folders():
            for container in _folders(folder):
                for restart in _run_numbers(container):
                    file = container / f"{restart}.log"
                    found.append((_modified_at(file), folder, (container.name, restart)))
        for _, folder, run in sorted(found):
            project, uid = folder.parent.parent.name, folder.name.rpartition("_")[2]
            pod = self._index.pods.get(uid)
            if pod is None:
                record = _read_record(folder)
                deleted_at = parse_time_ns(record.deleted_at) / 1e9 if record and record.deleted_at else None
                pod = self._index.add_pod(project, uid, folder, deleted_at)
            stream_file = StreamFile(folder / run[0] / f"{run[1]}.log")
            self._index.set_size(pod, run, stream_file, stream_file.size_bytes())

    def _path_of(self, stream: Stream, pod: PodRecord) -> Path:
        return self._record_path(pod).parent / _check_name(stream.container) / f"{stream.restart}.log"

    def _namespace_uid(self, pod: LoggedPod) -> str:
        return self.namespaces.uid_of(pod.metadata.namespace, pod.metadata.creation_timestamp)

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


def _log_plan(plan: RetentionPlan) -> None:
    if any(plan):
        log.info(
            "retention enforced",
            shortened=len(plan.to_shorten),
            cleared=len(plan.to_clear),
            removed=len(plan.to_remove),
        )


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


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


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
