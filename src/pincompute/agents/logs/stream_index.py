"""Index of the stored streams with their sizes, by project and pod; it is read from the disk once, at the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pincompute.agents.logs.position import is_volume_file
from pincompute.agents.logs.retention import StoredStream
from pincompute.agents.logs.stream_file import StreamFile

RunKey = tuple[str, int]
"""Container, or file of a log volume, and restart number."""


class IndexedStream:
    """One stream of the index."""

    __slots__ = ("file", "size_bytes", "written")

    def __init__(self, file: StreamFile, size_bytes: int, written: int) -> None:
        self.file = file
        self.size_bytes = size_bytes
        self.written = written


class IndexedPod:
    """Streams of one pod."""

    __slots__ = ("deleted_at", "folder", "project", "size_bytes", "streams", "uid")

    def __init__(self, project: str, uid: str, folder: Path, deleted_at: float | None) -> None:
        self.project = project
        self.uid = uid
        self.folder = folder
        self.deleted_at = deleted_at
        """Seconds since 1970; None while the pod exists."""
        self.streams: dict[RunKey, IndexedStream] = {}
        self.size_bytes = 0

    @property
    def file_count(self) -> int:
        return sum(is_volume_file(container) for container, _ in self.streams)

    def stored(self, now_s: float) -> Iterator[StoredStream]:
        deleted_for_s = -1.0 if self.deleted_at is None else max(0.0, now_s - self.deleted_at)
        for (container, restart), stream in self.streams.items():
            yield StoredStream(
                self.project, self.uid, container, restart, stream.size_bytes, deleted_for_s, stream.written
            )


class IndexedProject:
    """Pods of one project, and the sums of their streams."""

    __slots__ = ("pods", "size_bytes", "stream_count")

    def __init__(self) -> None:
        self.pods: dict[str, IndexedPod] = {}
        self.size_bytes = 0
        self.stream_count = 0


class StreamIndex:
    """Every change of a stream's size goes through here, so that the sums are those of the files."""

    def __init__(self) -> None:
        self.projects: dict[str, IndexedProject] = {}
        self.pods: dict[str, IndexedPod] = {}
        """By uid."""
        self.size_bytes = 0
        self.stream_count = 0
        self._writes = 0

    def add_pod(self, project: str, uid: str, folder: Path, deleted_at: float | None) -> IndexedPod:
        """The pod, which is added if it is new."""
        pod = self.pods.get(uid)
        if pod is None:
            pod = self.pods[uid] = IndexedPod(project, uid, folder, deleted_at)
            self.projects.setdefault(project, IndexedProject()).pods[uid] = pod
        return pod

    def find(self, uid: str, run: RunKey) -> IndexedStream | None:
        pod = self.pods.get(uid)
        return pod.streams.get(run) if pod else None

    def set_size(self, pod: IndexedPod, run: RunKey, file: StreamFile, size_bytes: int) -> None:
        """Records a write: the present size of a stream, which is added if it is new."""
        self._writes += 1
        stream, project = pod.streams.get(run), self.projects[pod.project]
        if stream is None:
            stream = pod.streams[run] = IndexedStream(file, 0, 0)
            project.stream_count += 1
            self.stream_count += 1
        stream.written = self._writes
        self._add_bytes(pod, size_bytes - stream.size_bytes)
        stream.size_bytes = size_bytes

    def resize(self, pod: IndexedPod, run: RunKey, size_bytes: int) -> None:
        """Records the size of a stream that retention has changed; its age stays."""
        stream = pod.streams[run]
        self._add_bytes(pod, size_bytes - stream.size_bytes)
        stream.size_bytes = size_bytes

    def remove(self, pod: IndexedPod, run: RunKey) -> None:
        """Removes a stream, and its pod and project with their last one."""
        stream, project = pod.streams.pop(run), self.projects[pod.project]
        project.stream_count -= 1
        self.stream_count -= 1
        self._add_bytes(pod, -stream.size_bytes)
        if not pod.streams:
            del self.pods[pod.uid], project.pods[pod.uid]
        if not project.pods:
            del self.projects[pod.project]

    def stored(self, now_s: float) -> list[StoredStream]:
        return [each for pod in self.pods.values() for each in pod.stored(now_s)]

    def stored_of_project(self, project: str, now_s: float) -> list[StoredStream]:
        return [each for pod in self.projects[project].pods.values() for each in pod.stored(now_s)]

    def _add_bytes(self, pod: IndexedPod, count: int) -> None:
        pod.size_bytes += count
        self.projects[pod.project].size_bytes += count
        self.size_bytes += count
