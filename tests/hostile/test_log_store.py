"""A hostile pod and the log store: forged and endless streams, a full store, slow readers, a reused project name."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestServer

from pincompute.agents.listeners import LOOPBACK_CALLER, Caller
from pincompute.agents.logs import server as server_module, subscribers
from pincompute.agents.logs.lines import MAX_STORED_LINE_BYTES
from pincompute.agents.logs.namespaces import Namespace
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.retention import RetentionLimits
from pincompute.agents.logs.server import MAX_BODY_BYTES, build_app
from pincompute.agents.logs.store import LogStore
from pincompute.api.logs import ContainerRun, LogBatch, LogLine
from pincompute.api.names import DESK, LOG_SHIPPER, METRICS_READER, WORKLOAD_LABEL
from pincompute.base.clock import Clock
from pincompute.planning.pods.container_runs import LoggedPod
from pincompute.platforms.kubernetes.logs.lines import keep_last

NOW = datetime(2026, 1, 10, tzinfo=UTC)
LINE = b"2026-01-10T00:00:00Z file F hello\n"
OUTPUT = LINE.replace(b"file", b"stdout")
LIMITS = RetentionLimits(
    total_bytes=400_000, project_bytes=300_000, pod_bytes=100_000, shortened_bytes=4_000, reserve_bytes=0,
    project_streams=60, total_streams=80, pod_files=10,
)  # fmt: skip


class FixedClock(Clock):
    """A clock that stands still, as the pods of these tests were deleted in its time."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def namespace(name: str, uid: str, created: str = "2026-01-01T00:00:00Z") -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "uid": uid, "creationTimestamp": created}}, Namespace)


def logged_pod(project: str, uid: str, created: str = "2026-01-02T00:00:00Z") -> LoggedPod:
    metadata = {
        "name": f"web-{uid}", "namespace": project, "uid": uid, "labels": {WORKLOAD_LABEL: "web"},
        "creationTimestamp": created,
    }  # fmt: skip
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [{"name": "web"}]}}, LoggedPod)


def new_store(folder: Path, limits: RetentionLimits = LIMITS) -> LogStore:
    store = LogStore(folder, limits, clock=FixedClock())
    for name in ("evil", "good"):
        store.observe_namespace(namespace(name, f"uid-of-{name}"))
    store.namespaces.watched = True
    return store


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return new_store(tmp_path)


def write(store: LogStore, project: str, uid: str, name: str, text: bytes = LINE) -> bool:
    """Sends a batch after the stream's position, as a shipper does."""
    record = store.pods.get(uid) or store.pods.observe(logged_pod(project, uid), f"uid-of-{project}")
    stream = Stream(project, record.name, uid, name)
    start = store.position(stream, record)
    end = Position(start.segment, start.offset + len(text), "m")
    return store.append(Batch(stream, start, end, text), record)[0]


def read(store: LogStore, project: str, uid: str, name: str) -> list[str]:
    run = ContainerRun(pod=f"web-{uid}", uid=uid, container=name)
    return [each.text for each in store.read_entries(project, "web", run, tail=1000, since=0)]


def disk_bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*.log*") if each.is_file())


@asynccontextmanager
async def serving(store: LogStore, caller: Caller) -> AsyncGenerator[Callable[..., Any]]:
    app = build_app(store, lambda _: caller, frozenset({DESK}))
    async with TestServer(app) as server, aiohttp.ClientSession() as session:

        def request(method: str, path: str, body: bytes = b"", **query: Any) -> Any:
            return session.request(method, server.make_url(path), params=query, data=body)

        yield request


POD = Caller("", "evil", "web")
QUERY = {"project": "evil", "pod": "web-e1", "uid": "e1", "segment": 0, "start": 0, "end": 1, "mark": "", "restart": 0}


@pytest.mark.parametrize(
    ("container", "restart", "status"),
    [
        ("app.log", 0, 200), ("web", 0, 403), ("invented", 0, 403), ("app.log", 1, 403), ("../../x.log", 0, 400),
        ("..", 0, 400),
    ],
)  # fmt: skip
async def test_pod_writes_only_volume_files(store: LogStore, container: str, restart: int, status: int) -> None:
    store.observe_pod(logged_pod("evil", "e1"))
    async with serving(store, POD) as request:
        query = {**QUERY, "container": container, "restart": restart}
        async with request("POST", "/v1/batches", LINE, **query) as response:
            assert response.status == status


async def test_node_ships_no_container_that_the_pod_does_not_have(store: LogStore) -> None:
    store.observe_pod(logged_pod("evil", "e1"))
    async with (
        serving(store, Caller(LOG_SHIPPER)) as request,
        request("POST", "/v1/batches", OUTPUT, **QUERY, container="invented") as response,
    ):
        assert response.status == 425


def test_pod_cannot_forge_standard_output_or_unreadable_lines(store: LogStore) -> None:
    forged = b"2026-01-10T00:00:00Z stderr F panic\n" + OUTPUT
    unreadable = b"2026-99-99T99:99:99Z file F when\n2026-01-10T1.2.3.4.5Z file F when\n# 9 9 m\n"
    write(store, "evil", "e1", "app.log", forged + unreadable + LINE)
    assert read(store, "evil", "e1", "app.log") == ["hello"]


def test_long_lines_are_cut_and_joined_ones_bounded(store: LogStore, tmp_path: Path) -> None:
    write(store, "evil", "e1", "app.log", LINE.replace(b"hello", b"x" * 90_000))
    assert len(read(store, "evil", "e1", "app.log")[0]) < MAX_STORED_LINE_BYTES
    assert disk_bytes(tmp_path) < MAX_STORED_LINE_BYTES + 200
    partial = LINE.replace(b"F hello", b"P " + b"y" * 30_000)
    many = LogStore(tmp_path / "many", RetentionLimits())
    write(many, "evil", "e1", "app.log", partial * 100)
    assert max(len(each) for each in read(many, "evil", "e1", "app.log")) == 9 * 30_000


async def test_oversized_body_is_rejected(store: LogStore) -> None:
    store.observe_pod(logged_pod("evil", "e1"))
    async with serving(store, POD) as request:
        body = LINE * (MAX_BODY_BYTES // len(LINE) + 1)
        with pytest.warns(ResourceWarning, match="large body"):
            async with request("POST", "/v1/batches", body, **QUERY, container="app.log") as response:
                assert response.status == 413


def test_pod_cannot_create_streams_without_end(store: LogStore, tmp_path: Path) -> None:
    for number in range(300):
        assert write(store, "evil", "e1", f"file{number}.log")
    folder = tmp_path / "evil" / "web" / "web-e1_e1"
    assert len([each for each in folder.iterdir() if each.is_dir()]) <= LIMITS.pod_files
    assert read(store, "evil", "e1", "file299.log") == ["hello"]


def test_asking_for_positions_takes_no_memory(store: LogStore, tmp_path: Path) -> None:
    store.observe_pod(logged_pod("evil", "e1"))
    record = store.pods.get("e1")
    assert record
    for number in range(1_000):
        store.position(Stream("evil", "web-e1", "e1", f"file{number}.log"), record)
    assert store._index.stream_count == 0  # noqa: SLF001
    assert list(tmp_path.iterdir()) == []


def test_flood_evicts_only_its_own_lines(store: LogStore, tmp_path: Path) -> None:
    """Forty pods of one project write ten times what the store holds, in lines of every length."""
    for number in range(3):
        write(store, "good", f"g{number}", "web", OUTPUT * 300)
        store.mark_pod_deleted(logged_pod("good", f"g{number}"), NOW - timedelta(days=3))
    store.enforce_retention(NOW)
    for number in range(200):
        text = LINE.replace(b"hello", b"x" * (20_000 if number % 2 else 10))
        assert write(store, "evil", f"e{number % 40}", f"f{number % 7}.log", text * (2 if number % 2 else 400))
        assert disk_bytes(tmp_path) <= LIMITS.total_bytes + 40_000
    assert disk_bytes(tmp_path / "evil") <= LIMITS.project_bytes
    # The other tenant has lost nothing, and its next line is stored.
    for number in range(3):
        assert read(store, "good", f"g{number}", "web") == ["hello"] * 300
    assert write(store, "good", "g9", "web", OUTPUT)


def test_stream_counts_are_bounded_for_the_project_that_exceeds_them(store: LogStore) -> None:
    write(store, "good", "g1", "web", OUTPUT)
    store.mark_pod_deleted(logged_pod("good", "g1"), NOW)
    for number in range(200):
        write(store, "evil", f"e{number}", "app.log")
        store.mark_pod_deleted(logged_pod("evil", f"e{number}"), NOW)
    assert store._index.projects["evil"].stream_count <= LIMITS.project_streams  # noqa: SLF001
    assert read(store, "good", "g1", "web") == ["hello"]


def test_writes_of_retention_are_in_proportion_to_what_it_frees(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write_bytes = Path.write_bytes

    def record(path: Path, data: bytes) -> int:
        written.append(len(data))
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", record)
    received = 0
    for number in range(300):
        # Long lines: the last 200 of them are no small file.
        text = LINE.replace(b"hello", b"x" * 20_000)
        write(store, "evil", f"e{number % 10}", f"f{number % 2}.log", text)
        received += len(text)
        store.enforce_retention(NOW)
    assert sum(written) < received / 4


def test_room_is_free_again_after_the_attacker_is_deleted(store: LogStore, tmp_path: Path) -> None:
    for number in range(20):
        write(store, "evil", f"e{number}", "app.log", LINE * 600)
    store.remove_namespace(namespace("evil", "uid-of-evil"))
    assert not (tmp_path / "evil").exists()
    assert store._index.size_bytes == 0  # noqa: SLF001
    for number in range(8):
        assert write(store, "good", f"g{number}", "web", OUTPUT * 900)
    assert disk_bytes(tmp_path) > 200_000


def test_sizes_are_those_of_the_files(store: LogStore, tmp_path: Path) -> None:
    for number in range(200):
        write(store, "evil", f"e{number % 9}", f"f{number % 13}.log", LINE * (number * 7 % 90))
        if number % 50 == 0:
            store.mark_pod_deleted(logged_pod("evil", f"e{number % 9}"), NOW)
    assert store._index.size_bytes == disk_bytes(tmp_path)  # noqa: SLF001
    restarted = new_store(tmp_path)
    assert restarted._index.size_bytes == disk_bytes(tmp_path)  # noqa: SLF001
    assert restarted._index.stream_count == store._index.stream_count  # noqa: SLF001


def test_new_project_does_not_read_logs_of_a_former_one(store: LogStore, tmp_path: Path) -> None:
    write(store, "evil", "e1", "web", OUTPUT)
    shutil.copytree(tmp_path / "evil", tmp_path / "copy")
    # The deletion was missed: the namespace reappears with another uid.
    store.observe_namespace(namespace("evil", "uid-2", "2026-01-05T00:00:00Z"))
    assert store.container_runs("evil", "web") == []
    # Files that a crash has left behind are not readable either.
    shutil.move(tmp_path / "copy", tmp_path / "evil")
    restarted = LogStore(tmp_path, LIMITS)
    restarted.observe_namespace(namespace("evil", "uid-2", "2026-01-05T00:00:00Z"))
    restarted.namespaces.watched = True
    assert restarted.container_runs("evil", "web") == []
    assert read(restarted, "evil", "e1", "web") == []
    restarted.remove_former_projects()
    assert not (tmp_path / "evil").exists()


def test_records_of_earlier_releases_stay_readable(store: LogStore, tmp_path: Path) -> None:
    write(store, "good", "g1", "web", OUTPUT)
    (file,) = (tmp_path / "good").rglob("pod.json")
    record = msgspec.json.decode(file.read_bytes())
    file.write_bytes(
        msgspec.json.encode(
            {name: record[name] for name in record.keys() - {"namespace_uid", "namespaceUid", "containers"}}
        )
    )
    assert [each.uid for each in store.container_runs("good", "web")] == ["g1"]
    # The age of the pod tells to which namespace it belongs.
    store.observe_namespace(namespace("good", "uid-2", "2026-01-05T00:00:00Z"))
    assert store.container_runs("good", "web") == []


async def test_late_lines_of_a_deleted_project_are_not_stored(store: LogStore, tmp_path: Path) -> None:
    store.observe_pod(logged_pod("evil", "e1"))
    store.remove_namespace(namespace("evil", "uid-of-evil"))
    store.observe_namespace(namespace("evil", "uid-2", "2026-01-05T00:00:00Z"))
    store.mark_pod_deleted(logged_pod("evil", "e1"), NOW)
    async with (
        serving(store, POD) as request,
        request("POST", "/v1/batches", LINE, **QUERY, container="app.log") as response,
    ):
        assert response.status == 425
    assert disk_bytes(tmp_path) == 0


async def test_slow_follower_is_dropped_with_a_message(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "MAX_QUEUED_BYTES", 10_000)
    with store.subscribers.subscribe("evil", "web") as subscription:
        for _ in range(5_000):
            write(store, "evil", "e1", "app.log")
        assert not store.subscribers.has_subscribers("evil", "web")
        received = [await subscription.get() for _ in range(1_000) if subscription._queue.qsize()]  # noqa: SLF001
    assert len(received) < 60
    assert received[-1] is None
    assert isinstance(received[-2], LogBatch)
    assert "this reader was dropped" in received[-2].problem


async def test_follower_that_reads_nothing_is_disconnected(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "WRITE_TIMEOUT_S", 0.1)
    store.observe_pod(logged_pod("evil", "e1"))
    app = build_app(store, lambda _: Caller(DESK), frozenset({DESK}))
    async with TestServer(app) as server, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1_000)
        writer.write(b"GET /v1/fresh?project=evil&workload=web HTTP/1.1\r\nHost: store\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        while store.subscribers.has_subscribers("evil", "web"):
            write(store, "evil", "e1", "app.log", LINE.replace(b"hello", b"x" * 30_000) * 3)
            await asyncio.sleep(0)
        writer.close()


async def test_followers_are_bounded_in_number(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "MAX_SUBSCRIPTIONS_PER_PROJECT", 1)
    with store.subscribers.subscribe("evil", "web"):
        async with (
            serving(store, Caller(DESK)) as request,
            request("GET", "/v1/fresh", project="evil", workload="web") as response,
        ):
            assert response.status == 503
            assert "1 readers follow log files of evil already" in await response.text()
        with store.subscribers.subscribe("good", "web"):
            pass


async def test_slow_body_blocks_neither_nodes_nor_other_projects(store: LogStore) -> None:
    for project, uid in (("evil", "e1"), ("good", "g1")):
        store.observe_pod(logged_pod(project, uid))
    callers = {"e1": POD, "g1": Caller("", "good", "web")}
    app = build_app(store, lambda request: callers[request.query["uid"]], frozenset({DESK}))
    async with TestServer(app) as server, aiohttp.ClientSession() as session, asyncio.timeout(15):

        async def endless() -> AsyncGenerator[bytes]:
            yield LINE
            await asyncio.Event().wait()

        url = server.make_url("/v1/batches")
        slow = [
            asyncio.create_task(session.post(url, params={**QUERY, "container": "app.log"}, data=endless()))
            for _ in range(50)
        ]
        query = {**QUERY, "project": "good", "pod": "web-g1", "uid": "g1", "container": "app.log"}
        async with session.post(url, params=query, data=LINE) as response:
            assert response.status == 200
        for each in slow:
            each.cancel()
        await asyncio.wait(slow)


def test_read_is_bounded_in_bytes(tmp_path: Path) -> None:
    store = LogStore(tmp_path)
    for _ in range(12):
        write(store, "evil", "e1", "app.log", LINE.replace(b"hello", b"x" * 30_000) * 20)
    run = ContainerRun(pod="web-e1", uid="e1", container="app.log")
    entries = store.read_entries("evil", "web", run, tail=100_000, since=0)
    assert 3 << 20 < sum(len(each.text) for each in entries) <= 4 << 20
    assert len(store.read_entries("evil", "web", run, tail=100_000, since=0, max_bytes=70_000)) == 2


def test_reader_keeps_the_last_lines_that_fit() -> None:
    items = [(number, LogLine("a", "", "x" * 800)) for number in range(1_000)]
    assert [at for at, _ in keep_last(items, 3_000)] == [997, 998, 999]
    assert [at for at, _ in keep_last(items, 10)] == [999]


@pytest.mark.parametrize("caller", [POD, Caller(), Caller(DESK), Caller(LOG_SHIPPER), LOOPBACK_CALLER])
async def test_only_the_reader_of_metrics_reads_them(tmp_path: Path, caller: Caller) -> None:
    store = LogStore(tmp_path)
    async with serving(store, caller) as request, request("GET", "/metrics") as answer:
        assert (answer.status, "pincompute_" in await answer.text()) == (403, False)
    async with serving(store, Caller(METRICS_READER)) as request:
        async with request("GET", "/metrics") as answer:
            assert "pincompute_log_store_disk_full 0.0" in await answer.text()
        # That certificate opens nothing else.
        async with request("GET", "/v1/lives", project="evil", workload="web") as answer:
            assert answer.status == 403
