"""Following files of log volumes: every line once, in order, and only of the requested files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from pincompute.agents.callers import Caller
from pincompute.agents.logs import subscribers
from pincompute.agents.logs.lines import format_file_lines
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.server import build_app
from pincompute.agents.logs.store import LogStore
from pincompute.api.logs import ContainerRun, LogLine, LogMarker
from pincompute.api.names import DESK
from pincompute.base.clock import SystemClock
from pincompute.base.http_process import serve_http
from pincompute.objects.times import parse_time_ns
from pincompute.planning.pods.container_runs import LoggedPod
from pincompute.platforms.kubernetes.logs.container_runs import LogFilter, LogOwner
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient
from pincompute.platforms.kubernetes.logs.volume_files import VolumeFileFollower
from real_platform import free_port

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = LogOwner("web", "web", created="2026-01-01T00:00:00Z")


class FastClock(SystemClock):
    """Shortens the delay before a reconnect."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


class FollowedStore:
    """A log store, a follower of its files, and the items that it emits."""

    def __init__(self, folder: Path, **filter_options: str) -> None:
        self.store = LogStore(folder)
        self.log_filter = LogFilter("me", WEB, **filter_options)
        self.emitted: asyncio.Queue[LogLine | LogMarker] = asyncio.Queue()
        self.port = free_port()
        self._ends: dict[Stream, Position] = {}

    def write(self, *lines: str, pod: str = "web-0", file: str = "app.log", at: int = 1, workload: str = "web") -> None:
        """Ships a batch of lines of one time, as the agent does."""
        self.store.observe_pod(logged_pod(pod, workload))
        pod_record = self.store.pods.get(pod)
        assert pod_record
        text = format_file_lines("\n".join(lines).encode(), f"2026-01-01T00:00:{at:02}Z")
        stream = Stream("me", pod, pod, file)
        start = self._ends.get(stream, Position())
        end = self._ends[stream] = Position(0, start.offset + len(text), "m")
        assert self.store.append(Batch(stream, start, end, text), pod_record)[0]

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        app = build_app(self.store, lambda _: Caller(DESK), frozenset({DESK}))
        async with serve_http(f"127.0.0.1:{self.port}", app, grace=0.1):
            yield

    @asynccontextmanager
    async def following(self, **emitted_until: int) -> AsyncGenerator[VolumeFileFollower]:
        """Follows from the given second of each pod's file."""
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as session:
            files = VolumeFileFollower(LogStoreClient(session), FastClock(), self.log_filter, self.emitted.put)
            for pod, second in emitted_until.items():
                name = pod.replace("_", "-")
                run = ContainerRun(pod=name, uid=name, container="app.log")
                files.resume_after(run, parse_time_ns(f"2026-01-01T00:00:{second:02}Z"))
            task = asyncio.create_task(files.run())
            try:
                yield files
            finally:
                task.cancel()

    async def next_text(self) -> str:
        async with asyncio.timeout(60):
            item = await self.emitted.get()
        return f"{item.replica} {item.container} {item.text}" if isinstance(item, LogLine) else f"-- {item.text}"


def logged_pod(name: str, workload: str, created: str = "2026-01-01T00:00:01Z") -> LoggedPod:
    metadata = {
        "name": name, "namespace": "me", "uid": name, "creationTimestamp": created,
        "labels": {"pinterest.com/workload": workload},
    }  # fmt: skip
    item: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [{"name": workload}]}}
    return msgspec.convert(item, LoggedPod)


async def _wait_subscribed(followed: FollowedStore) -> None:
    """Waits until the follower is subscribed, by a line that only subscribers receive."""
    followed.write("here", pod="web-9", at=1)
    assert await followed.next_text() == "9 app.log here"


async def test_emits_lines_as_they_are_stored(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path)
    async with followed.serving(), followed.following():
        await _wait_subscribed(followed)
        followed.write("one", "two")
        assert [await followed.next_text() for _ in range(2)] == ["0 app.log one", "0 app.log two"]
        followed.write("three", file="access.log", at=2)
        assert await followed.next_text() == "0 access.log three"
        followed.write("four", pod="web-1", at=3)
        assert await followed.next_text() == "1 app.log four"


async def test_resumes_after_emitted_lines(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path)
    followed.write("read before", "and this, of the same moment", at=4)
    followed.write("stored before the subscription", at=5)
    async with followed.serving(), followed.following(web_0=4):
        assert await followed.next_text() == "0 app.log stored before the subscription"


async def test_emits_nothing_outside_the_filter(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path, container="app.log", replica="0")
    followed.store.observe_pod(logged_pod("web-7", "web", "2025-12-31T00:00:00Z"))
    async with followed.serving(), followed.following():
        followed.write("here")
        assert await followed.next_text() == "0 app.log here"
        followed.write("another file", file="access.log")
        followed.write("another replica", pod="web-1")
        followed.write("another workload", pod="db-0", workload="db")
        followed.write("standard output is read from the pod", file="web")
        followed.write("here too", at=2)
        assert await followed.next_text() == "0 app.log here too"


async def test_emits_nothing_of_deleted_pods_and_earlier_workloads(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path)
    followed.write("deleted pod", pod="web-1")
    followed.store.mark_pod_deleted(logged_pod("web-1", "web"), NOW)
    followed.write("earlier workload", pod="web-2")
    followed.store.observe_pod(logged_pod("web-2", "web", "2025-12-31T00:00:00Z"))
    async with followed.serving(), followed.following():
        await _wait_subscribed(followed)


async def test_reports_unavailable_store_once_and_catches_up(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path)
    async with followed.following():
        async with followed.serving():
            assert (await followed.next_text()).startswith("-- the log store cannot be read")
            await _wait_subscribed(followed)
        assert (await followed.next_text()).startswith("-- the log store cannot be read")
        followed.write("meanwhile", at=2)
        async with followed.serving():
            assert await followed.next_text() == "0 app.log meanwhile"


async def test_slow_reader_is_disconnected_and_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "MAX_QUEUED_BATCHES", 1)
    followed = FollowedStore(tmp_path)
    followed.emitted = asyncio.Queue(maxsize=1)
    async with followed.serving(), followed.following():
        await _wait_subscribed(followed)
        for second in range(2, 50):
            followed.write(f"line {second}", at=second)
        texts: list[str] = []
        while len(texts) < 48:
            text = await followed.next_text()
            if text.startswith("--"):
                assert "this reader was dropped" in text
            else:
                texts.append(text)
        assert texts == [f"0 app.log line {second}" for second in range(2, 50)]


async def test_catch_up_emits_what_was_stored(tmp_path: Path) -> None:
    followed = FollowedStore(tmp_path)
    async with followed.serving(), followed.following() as files:
        await _wait_subscribed(followed)
        followed.write("the last line", at=2)
        await files.catch_up()
        assert await followed.next_text() == "0 app.log the last line"
        await files.catch_up()
        assert followed.emitted.empty()
