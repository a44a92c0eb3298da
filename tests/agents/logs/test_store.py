"""Log store: authorization of writers and readers, records after restarts, retention and full disks."""

from __future__ import annotations

import errno
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestServer

from certificate_factory import TRUST_DOMAIN, issue_authority, issue_svid
from pincompute.agents.callers import Caller, pod_caller
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.retention import RetentionLimits
from pincompute.agents.logs.server import build_app
from pincompute.agents.logs.store import LogStore
from pincompute.api.logs import ContainerRun
from pincompute.api.names import DESK, LOG_SHIPPER
from pincompute.base.problem import Refused
from pincompute.planning.pods.container_runs import LoggedPod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = Stream("me", "hello-1", "u1", "hello")
LINE = b"2026-01-01T00:00:00Z stdout F hello\n"
SHIPPER, OWN, OTHER, READER = (
    Caller(LOG_SHIPPER), Caller("", "me", "hello"), Caller("", "me", "other"), Caller(DESK)
)  # fmt: skip


def pod(uid: str = "u1", workload: str = "hello", restarts: int = 0) -> LoggedPod:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:01Z"}}
    status = {"name": "hello", "restartCount": restarts, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    metadata = {"name": "hello-1", "namespace": "me", "uid": uid, "labels": {"pinterest.com/workload": workload}}
    content: dict[str, Any] = {
        "metadata": metadata,
        "spec": {"containers": [{"name": "hello"}]},
        "status": {"containerStatuses": [{**status, **({"lastState": ended} if restarts else {})}]},
    }
    return msgspec.convert(content, LoggedPod)


def batch(start: int = 0, lines: bytes = LINE) -> Batch:
    return Batch(STREAM, Position(0, start), Position(0, start + len(lines), "m"), lines)


def append(store: LogStore, batch: Batch) -> bool:
    record = store.pods.get("u1")
    assert record
    return store.append(batch, record)[0]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = LogStore(tmp_path)
    store.observe_pod(pod())
    return store


async def send(store: LogStore, caller: Caller, path: str, **query: Any) -> tuple[int, Any]:
    app = build_app(store, lambda _: caller, frozenset({DESK}))
    method = "POST" if path == "/v1/batches" else "GET"
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        session.request(method, server.make_url(path), params=query, data=LINE) as response,
    ):
        text = await response.text()
        return response.status, msgspec.json.decode(text) if response.status in (200, 409) else text


ONE = {**STREAM._asdict(), "segment": 0, "start": 0, "end": len(LINE), "mark": "m"}


@pytest.mark.parametrize(
    ("caller", "container", "status"),
    [
        (SHIPPER, "hello", 200), (OWN, "hello", 403), (OTHER, "hello", 403), (READER, "hello", 403),
        (Caller(), "hello", 403),
        (SHIPPER, "app.log", 403), (OWN, "app.log", 200), (OTHER, "app.log", 403), (READER, "app.log", 403),
    ],
)  # fmt: skip
async def test_only_node_and_own_pod_write_logs(store: LogStore, caller: Caller, container: str, status: int) -> None:
    """The node ships standard output, and the pod its volume files."""
    assert (await send(store, caller, "/v1/batches", **{**ONE, "container": container}))[0] == status
    assert (await send(store, caller, "/v1/positions", **{**STREAM._asdict(), "container": container}))[0] == status


@pytest.mark.parametrize(("caller", "status"), [(READER, 200), (SHIPPER, 403), (OWN, 403), (Caller(), 403)])
async def test_only_desk_reads_logs(store: LogStore, caller: Caller, status: int) -> None:
    assert (await send(store, caller, "/v1/lives", project="me", workload="hello"))[0] == status


@pytest.mark.parametrize(
    ("name", "caller"),
    [
        ("me/hello", OWN),
        ("pincompute-nodes/log-shipper", SHIPPER),
        ("pincompute-system/desk", READER),
        ("me/desk", Caller(project="me", workload="desk")),
        ("me", Caller()),
    ],
)
def test_identifies_caller_by_pod_certificate(name: str, caller: Caller) -> None:
    certificate = issue_svid(issue_authority(), f"spiffe://{TRUST_DOMAIN}/{name}")
    found = pod_caller(certificate.der, TRUST_DOMAIN)
    assert found._replace(issued_at=None, expires_at=None) == caller


async def test_repeated_batch_is_stored_once(store: LogStore) -> None:
    first = await send(store, SHIPPER, "/v1/batches", **ONE)
    assert first == (200, {"segment": 0, "offset": len(LINE), "mark": "m"})
    assert await send(store, SHIPPER, "/v1/batches", **ONE) == (409, first[1])
    assert [each.text for each in stored_lines(store)] == ["hello"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"uid": "unknown"}, 425),
        ({"pod": "another"}, 403),
        ({"project": "another"}, 403),
        ({"container": "../../etc"}, 403),
        ({"container": "a/b"}, 425),
        ({"mark": "a\nb"}, 400),
        ({"mark": "a" * 201}, 400),
        ({"start": "many"}, 400),
        ({"start": "-1"}, 400),
        ({"end": "9" * 19}, 400),
        ({"container": "unknown"}, 425),
    ],
)
async def test_rejects_invalid_batches(store: LogStore, change: dict[str, Any], status: int) -> None:
    assert (await send(store, SHIPPER, "/v1/batches", **{**ONE, **change}))[0] == status
    assert store.container_runs("me", "hello") == []


def test_line_cannot_forge_commit_line(store: LogStore) -> None:
    append(store, batch(lines=b"# 9 9 x\n" + LINE))
    assert LogStore(store._folder).container_runs("me", "hello")  # noqa: SLF001
    assert [each.text for each in stored_lines(store)] == ["hello"]
    record = store.pods.get("u1")
    assert record
    assert LogStore(store._folder).position(STREAM, record).segment == 0  # noqa: SLF001


def test_container_exit_survives_pod_and_store(store: LogStore, tmp_path: Path) -> None:
    append(store, batch())
    store.observe_pod(pod(restarts=1))
    # A restarted store must keep the exits that only the previous process has seen.
    restarted = LogStore(tmp_path)
    restarted.observe_pod(pod(restarts=2))
    restarted.mark_pod_deleted(pod(restarts=2), NOW)
    (run,) = LogStore(tmp_path).container_runs("me", "hello")
    assert run.end
    assert (run.end.reason, run.end.exit_code, run.pod_deleted_at) == ("OOMKilled", 137, "2026-01-01T00:00:00Z")


def test_pod_deleted_during_downtime_is_marked_deleted(store: LogStore, tmp_path: Path) -> None:
    append(store, batch())
    restarted = LogStore(tmp_path)
    restarted.observe_pod(pod("u2"))
    restarted.mark_missing_pods_deleted(NOW)
    assert [each.pod_deleted_at for each in restarted.container_runs("me", "hello")] == ["2026-01-01T00:00:00Z"]


def test_removes_logs_after_seven_days(store: LogStore, tmp_path: Path) -> None:
    append(store, batch())
    store.mark_pod_deleted(pod(), NOW)
    store.enforce_retention(NOW + timedelta(days=6))
    assert store.container_runs("me", "hello")
    store.enforce_retention(NOW + timedelta(days=8))
    assert list(tmp_path.iterdir()) == []


def test_shortened_stream_keeps_last_lines_and_position(tmp_path: Path) -> None:
    store = LogStore(tmp_path, RetentionLimits(total_bytes=1000, min_lines=3, shortened_bytes=400))
    store.observe_pod(pod())
    big = b"".join(LINE.replace(b"hello", b"%d" % number) for number in range(20_000))
    append(store, batch(lines=big))
    store.enforce_retention(NOW)
    assert [each.text for each in stored_lines(store)] == ["19997", "19998", "19999"]
    assert not append(store, batch())
    assert append(store, batch(len(big)))


async def test_full_store_refuses_batches_and_recovers(tmp_path: Path) -> None:
    store = LogStore(tmp_path, RetentionLimits(total_bytes=10_000, reserve_bytes=0))
    store.observe_pod(pod())
    store.enforce_retention(NOW)
    much = LINE * 272
    assert append(store, batch(lines=much))
    late = {**ONE, "start": len(much), "end": len(much) + len(LINE)}
    with pytest.raises(Refused, match="the log store is full"):
        append(store, batch(len(much), LINE * 300))
    # Nothing of the refused batch was stored, so that it can be sent again; a smaller batch is accepted.
    assert store.disk_full
    store.enforce_retention(NOW)
    assert not store.disk_full
    assert (await send(store, SHIPPER, "/v1/batches", **late))[0] == 200


async def test_full_store_responds_with_507_and_reason(tmp_path: Path) -> None:
    store = LogStore(tmp_path, RetentionLimits(total_bytes=10, reserve_bytes=0))
    store.observe_pod(pod())
    store.enforce_retention(NOW)
    status, content = await send(store, SHIPPER, "/v1/batches", **ONE)
    assert status == 507
    assert "[LogsFull]" in content
    assert store.container_runs("me", "hello") == []


def test_frees_disk_space_for_other_programs(tmp_path: Path) -> None:
    free = [10_000]
    store = LogStore(tmp_path, RetentionLimits(reserve_bytes=1_000), lambda _: free[0])
    for uid, days in (("u1", 2), ("u2", 1), ("u3", 0)):
        stream = STREAM._replace(uid=uid)
        store.observe_pod(pod(uid))
        record = store.pods.get(uid)
        assert record
        assert store.append(batch(lines=LINE * 50)._replace(stream=stream), record)[0]
        if days:
            store.mark_pod_deleted(pod(uid), NOW - timedelta(days=days))
    free[0] = 0
    store.enforce_retention(NOW)
    assert [each.uid for each in store.container_runs("me", "hello")] == ["u2", "u3"]
    record = store.pods.get("u3")
    assert record
    restarted = Batch(STREAM._replace(uid="u3"), Position(0, len(LINE) * 50), Position(0, len(LINE) * 51, "m"), LINE)
    # New lines replace the oldest ones of the largest project.
    assert store.append(restarted, record)[0]
    assert [each.uid for each in store.container_runs("me", "hello")] == ["u3"]


def test_new_store_is_empty(tmp_path: Path) -> None:
    store = LogStore(tmp_path / "data" / "logs")
    store.enforce_retention(NOW)
    assert not store.disk_full
    assert store.container_runs("me", "hello") == []


def test_full_disk_does_not_end_store(store: LogStore, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    append(store, batch())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(Refused, match="the log store is full"):
            append(store, batch(len(LINE)))
        store.observe_pod(pod(restarts=1))
        store.mark_pod_deleted(pod(restarts=1), NOW)
        assert store.disk_full
    store.enforce_retention(NOW)
    (run,) = LogStore(tmp_path).container_runs("me", "hello")
    assert run.end
    assert run.pod_deleted_at == "2026-01-01T00:00:00Z"


def stored_lines(store: LogStore) -> list[Any]:
    return store.read_entries(
        "me", "hello", ContainerRun(pod="hello-1", uid="u1", container="hello"), tail=100, since=0
    )
