"""The store: who may write what, who may read, and what is left when the pod is gone and the store was started anew."""

from __future__ import annotations

import errno
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import TestServer

from authorities import DOMAIN, authority, svid
from pincompute.agents.logs.callers import Caller, a_pod
from pincompute.agents.logs.keeping import Limits
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.server import application
from pincompute.agents.logs.store import Store
from pincompute.api.logs import Life
from pincompute.api.names import DESK, LOG_SHIPPER
from pincompute.base.problem import Refused
from pincompute.planning.pods.lives import Pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = Stream("me", "hello-1", "u1", "hello")
LINE = b"2026-01-01T00:00:00Z stdout F hello\n"
SHIPPER, OWN, OTHER, READER = (
    Caller(LOG_SHIPPER), Caller("", "me", "hello"), Caller("", "me", "other"), Caller(DESK)
)  # fmt: skip


def pod(uid: str = "u1", workload: str = "hello", restarts: int = 0) -> Pod:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:01Z"}}
    status = {"name": "hello", "restartCount": restarts, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    metadata = {"name": "hello-1", "namespace": "me", "uid": uid, "labels": {"pinterest.com/workload": workload}}
    said: dict[str, Any] = {
        "metadata": metadata,
        "spec": {"containers": [{"name": "hello"}]},
        "status": {"containerStatuses": [{**status, **({"lastState": ended} if restarts else {})}]},
    }
    return msgspec.convert(said, Pod)


def batch(start: int = 0, lines: bytes = LINE) -> Batch:
    return Batch(STREAM, Position(0, start), Position(0, start + len(lines), "m"), lines)


def put(store: Store, each: Batch) -> bool:
    known = store.pods.get("u1")
    assert known
    return store.take(each, known)[0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.see(pod())
    return store


async def asked(store: Store, who: Caller, path: str, **query: Any) -> tuple[int, Any]:
    served = application(store, lambda _: who, frozenset({DESK}))
    method = "POST" if path == "/v1/batches" else "GET"
    async with (
        TestServer(served) as server,
        aiohttp.ClientSession() as session,
        session.request(method, server.make_url(path), params=query, data=LINE) as answer,
    ):
        text = await answer.text()
        return answer.status, msgspec.json.decode(text) if answer.status in (200, 409) else text


ONE = {**STREAM._asdict(), "segment": 0, "start": 0, "end": len(LINE), "mark": "m"}


@pytest.mark.parametrize(("who", "status"), [(SHIPPER, 200), (OWN, 200), (OTHER, 403), (READER, 403), (Caller(), 403)])
async def test_only_its_node_and_itself_write_of_a_pod(store: Store, who: Caller, status: int) -> None:
    assert (await asked(store, who, "/v1/batches", **ONE))[0] == status
    assert (await asked(store, who, "/v1/positions", **STREAM._asdict()))[0] == status


@pytest.mark.parametrize(("who", "status"), [(READER, 200), (SHIPPER, 403), (OWN, 403), (Caller(), 403)])
async def test_only_the_desk_reads(store: Store, who: Caller, status: int) -> None:
    assert (await asked(store, who, "/v1/lives", project="me", workload="hello"))[0] == status


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("me/hello", OWN),
        ("pincompute-nodes/log-shipper", SHIPPER),
        ("pincompute-system/desk", READER),
        ("me/desk", Caller(project="me", workload="desk")),
        ("me", Caller()),
    ],
)
def test_who_asks_says_the_certificate_of_a_pod(name: str, who: Caller) -> None:
    shown = svid(authority(), f"spiffe://{DOMAIN}/{name}")
    assert a_pod(shown.der, DOMAIN) == who


async def test_a_batch_that_comes_twice_is_stored_once(store: Store) -> None:
    first = await asked(store, SHIPPER, "/v1/batches", **ONE)
    assert first == (200, {"segment": 0, "offset": len(LINE), "mark": "m"})
    assert await asked(store, SHIPPER, "/v1/batches", **ONE) == (409, first[1])
    assert [each.text for each in lines(store)] == ["hello"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"uid": "unknown"}, 425),
        ({"pod": "another"}, 403),
        ({"project": "another"}, 403),
        ({"container": "../../etc"}, 400),
        ({"container": ".."}, 400),
        ({"mark": "a\nb"}, 400),
        ({"start": "many"}, 400),
    ],
)
async def test_bad_batches(store: Store, change: dict[str, Any], status: int) -> None:
    assert (await asked(store, SHIPPER, "/v1/batches", **{**ONE, **change}))[0] == status
    assert store.lives("me", "hello") == []


def test_nobody_writes_a_position_into_a_line(store: Store) -> None:
    put(store, batch(lines=b"# 9 9 x\n" + LINE))
    assert Store(store._folder).lives("me", "hello")  # noqa: SLF001
    assert [each.text for each in lines(store)] == ["hello"]
    known = store.pods.get("u1")
    assert known
    assert Store(store._folder).position(STREAM, known).segment == 0  # noqa: SLF001


def test_how_a_life_ended_outlives_the_pod_and_the_store(store: Store, tmp_path: Path) -> None:
    put(store, batch())
    store.see(pod(restarts=1))
    # Another process: what it never saw itself, it must not forget.
    again = Store(tmp_path)
    again.see(pod(restarts=2))
    again.forget(pod(restarts=2), NOW)
    (life,) = Store(tmp_path).lives("me", "hello")
    assert life.end
    assert (life.end.reason, life.end.exit_code, life.gone) == ("OOMKilled", 137, "2026-01-01T00:00:00Z")


def test_a_pod_that_went_while_the_store_was_away_is_gone(store: Store, tmp_path: Path) -> None:
    put(store, batch())
    again = Store(tmp_path)
    again.see(pod("u2"))
    again.catch_up(NOW)
    assert [each.gone for each in again.lives("me", "hello")] == ["2026-01-01T00:00:00Z"]


def test_a_week_later_nothing_is_left_of_it(store: Store, tmp_path: Path) -> None:
    put(store, batch())
    store.forget(pod(), NOW)
    store.keep_house(NOW + timedelta(days=6))
    assert store.lives("me", "hello")
    store.keep_house(NOW + timedelta(days=8))
    assert list(tmp_path.iterdir()) == []


def test_what_takes_too_much_keeps_its_last_lines_and_its_place(tmp_path: Path) -> None:
    store = Store(tmp_path, Limits(total=1000, lines=3))
    store.see(pod())
    big = b"".join(LINE.replace(b"hello", b"%d" % number) for number in range(20_000))
    put(store, batch(lines=big))
    store.keep_house(NOW)
    assert [each.text for each in lines(store)] == ["19997", "19998", "19999"]
    assert not put(store, batch())
    assert put(store, batch(len(big)))


async def test_a_full_store_refuses_with_a_reason_and_goes_on_by_itself(tmp_path: Path) -> None:
    store = Store(tmp_path, Limits(total=10_000, reserve=0))
    store.see(pod())
    store.keep_house(NOW)
    assert not store.crowded
    much = LINE * 272
    assert put(store, batch(lines=much))
    assert store.crowded
    late = {**ONE, "start": len(much), "end": len(much) + len(LINE)}
    full = batch(len(much), LINE * 40)
    with pytest.raises(Refused, match="takes no more"):
        put(store, full)
    # Nothing was stored of it, so that it can come again; what fits is taken.
    assert store.pods.get("u1")
    assert (await asked(store, SHIPPER, "/v1/batches", **late))[0] == 200
    store.forget(pod(), NOW)
    store.keep_house(NOW)
    assert not store.crowded


async def test_why_it_takes_no_more_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path, Limits(total=10, reserve=0))
    store.see(pod())
    store.keep_house(NOW)
    status, said = await asked(store, SHIPPER, "/v1/batches", **ONE)
    assert status == 507
    assert "[LogsFull]" in said
    assert store.lives("me", "hello") == []


def test_what_others_need_of_the_disk_is_given_back_the_oldest_first(tmp_path: Path) -> None:
    free = [10_000]
    store = Store(tmp_path, Limits(reserve=1_000), lambda _: free[0])
    for uid, days in (("u1", 2), ("u2", 1), ("u3", 0)):
        stream = STREAM._replace(uid=uid)
        store.see(pod(uid))
        known = store.pods.get(uid)
        assert known
        assert store.take(batch(lines=LINE * 50)._replace(stream=stream), known)[0]
        if days:
            store.forget(pod(uid), NOW - timedelta(days=days))
    free[0] = 0
    store.keep_house(NOW)
    assert [each.uid for each in store.lives("me", "hello")] == ["u2", "u3"]
    known = store.pods.get("u3")
    assert known
    again = Batch(STREAM._replace(uid="u3"), Position(0, len(LINE) * 50), Position(0, len(LINE) * 51, "m"), LINE)
    with pytest.raises(Refused):
        store.take(again, known)
    free[0] = 5_000
    store.keep_house(NOW)
    assert store.take(again, known)[0]
    assert [each.uid for each in store.lives("me", "hello")] == ["u2", "u3"]


def test_the_first_day_of_a_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "data" / "logs")
    store.keep_house(NOW)
    assert not store.crowded


def test_a_full_disk_is_the_end_of_nothing(store: Store, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put(store, batch())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(Refused, match="takes no more"):
            put(store, batch(len(LINE)))
        store.see(pod(restarts=1))
        store.forget(pod(restarts=1), NOW)
        assert store.crowded
    store.keep_house(NOW)
    (life,) = Store(tmp_path).lives("me", "hello")
    assert life.end
    assert life.gone == "2026-01-01T00:00:00Z"


def lines(store: Store) -> list[Any]:
    return store.entries("me", "hello", Life(pod="hello-1", uid="u1", container="hello"), tail=100, since=0)
