"""The history: what becomes an entry, what is stored, and what is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy.exc import SQLAlchemyError
from tests.support.manual_clock import ManualClock

from insight_world import (
    InsightWorld,
    insight_node,
    insight_pod,
    insight_project,
    insight_workload,
    insight_world,
    time_after,
)
from pincompute.api.history import HistoryEntry, HistoryQuery, HistoryRequest, LastStateRequest, LaunchPhases
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.workload import Workload
from pincompute.insight import history as history_module
from pincompute.insight.history_store import prune, read_history
from pincompute.insight.recorder import KeyedEntry, launch_phases
from postgres_server import new_database, postgres_server


@pytest.fixture
def postgresql() -> Iterator[str]:
    with postgres_server() as socket:
        yield new_database(socket)


async def entries_of(world: InsightWorld, name: str = "web", project: str = "ads") -> list[HistoryEntry]:
    """Oldest first."""
    page = await world.client.history_of(HistoryRequest(project=project, workload=name, query=HistoryQuery(limit=500)))
    return page.entries[::-1]


async def events_of(world: InsightWorld, name: str = "web", project: str = "ads") -> list[str]:
    return [each.event for each in await entries_of(world, name, project)]


def submitted(workload: Workload, submission: str) -> Workload:
    metadata = msgspec.structs.replace(workload.metadata, annotations={SUBMISSION_ANNOTATION: submission})
    return msgspec.structs.replace(workload, metadata=metadata)


async def test_records_the_life_of_a_workload(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        first = submitted(insight_workload("web", reason="Progressing", port=80), "submission-1")
        ready = submitted(insight_workload("web", port=80), "submission-1")
        scaled = submitted(insight_workload("web", generation=2, port=80, replicas=3), "submission-2")
        broken = submitted(
            insight_workload("web", reason="CrashLoop", generation=2, port=80, replicas=3), "submission-2"
        )
        world.put(first)
        world.put(ready, first)
        world.put(scaled, ready)
        world.put(broken, scaled)
        world.put(insight_pod(broken, 0))
        world.delete(broken)
        found = await entries_of(world)
        assert [(each.event, each.reason, each.submission) for each in found] == [
            ("created", "", "submission-1"),
            ("state", "Progressing", ""),
            ("state", "Available", ""),
            ("changed", "", "submission-2"),
            ("state", "Available", ""),
            ("state", "CrashLoop", ""),
            ("launch", "", ""),
            ("deleted", "CrashLoop", ""),
        ]
        assert found[3].message == "replicas 1 -> 3"
        state = await world.client.last_state_of(LastStateRequest(project="ads", workload="web"))
        assert state is not None
        assert (state.deleted_at, state.workload.reason) == (time_after(0), "CrashLoop")
        assert [each.name for each in state.replicas] == ["web-0"]
        assert state.revision_changes == ["replicas 1 -> 3"]


async def test_changes_hide_values_that_look_like_secrets(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        before = insight_workload("web", port=80)
        world.put(before)
        secret = {"API_TOKEN": "hunter2hunter2hunter2"}
        world.put(insight_workload("web", generation=2, port=80, environment=secret), before)
        whole = "".join(each.message for each in await entries_of(world))
        assert "hunter2" not in whole
        assert "API_TOKEN" in whole


async def test_launch_has_its_phases(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        web = insight_workload("web", port=80)
        world.put(web)
        pending = insight_pod(web, 0, conditions=[], containerStatuses=[], phase="Pending")
        ready = insight_pod(web, 0)
        world.put(pending)
        assert "launch" not in await events_of(world)
        world.put(ready, pending)
        world.put(ready, ready)
        (launch,) = [each for each in await entries_of(world) if each.event == "launch"]
        assert (launch.at, launch.replica, launch.node) == (time_after(9), "web-0", "node-1")
        assert launch.launch == LaunchPhases(scheduled_s=1, sandbox_s=3, started_s=7, ready_s=9)


def test_phases_of_a_pod_without_times_are_unknown() -> None:
    pod = insight_pod(insight_workload("web", port=80), 0, conditions=[], containerStatuses=[])
    assert launch_phases(pod) == LaunchPhases()


async def test_records_restarts_failures_and_evictions_once(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        web = insight_workload("web", port=80)
        world.put(web)
        pods = [insight_pod(web, 0, restarts=count) for count in (1, 1, 2)]
        world.put(pods[0])
        world.put(pods[1], pods[0])
        world.put(pods[2], pods[1])
        ended = {"name": "main", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
        failed = insight_pod(web, 1, phase="Failed", conditions=[], containerStatuses=[ended])
        world.put(failed)
        world.put(failed, failed)
        condition = {
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": time_after(30),
        }  # fmt: skip
        world.put(insight_pod(web, 2, conditions=[condition]))
        found = [each for each in await entries_of(world) if each.event in {"restart", "failed", "evicted"}]
        assert [(each.event, each.replica, each.reason, each.message) for each in found] == [
            ("restart", "web-0", "OOMKilled", "main exited with code 137"),
            ("failed", "web-1", "", "main exited with code 3"),
            ("evicted", "web-2", "EvictionByEvictionAPI", "Eviction API: evicting"),
        ]


async def test_node_events_reach_the_workloads_with_replicas_there(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        web, api = insight_workload("web", port=80), insight_workload("api", "search", port=80)
        for each in (web, api, insight_node("node-1"), insight_node("node-2")):
            world.put(each)
        for pod in (insight_pod(web, 0), insight_pod(web, 1), insight_pod(api, 0, node="node-2")):
            world.put(pod)
        world.put(insight_node("node-1", ready=False))
        world.put(insight_node("node-1", ready=False))
        world.put(insight_node("node-1"))
        world.put(insight_node("node-1", cordoned=True))
        texts = [each.message for each in await entries_of(world) if each.event == "node"]
        assert texts == [
            f"{text}; replicas there: web-0, web-1"
            for text in ("node is not ready", "node is ready again", "node was cordoned")
        ]
        assert "node" not in await events_of(world, "api", "search")


async def test_restart_adds_nothing_twice_and_finds_what_changed_meanwhile(tmp_path: Path) -> None:
    web, api, gone = (insight_workload(name, port=80) for name in ("web", "api", "gone"))
    async with insight_world(tmp_path) as world:
        for each in (web, api, gone, insight_pod(web, 0)):
            world.put(each)
        await world.history.flush()
    async with insight_world(tmp_path, epoch="later") as world:
        world.put(web)
        world.put(insight_pod(web, 0))
        world.put(insight_workload("api", reason="CrashLoop", port=80))
        world.fleet.end_missing()
        assert await events_of(world) == ["created", "state", "launch"]
        assert [(each.event, each.reason) for each in await entries_of(world, "api")][2:] == [("state", "CrashLoop")]
        (*_, deletion) = await entries_of(world, "gone")
        assert (deletion.event, deletion.message) == ("deleted", "deleted while insight was not running")


async def test_later_project_of_the_same_name_has_no_history_of_the_former(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        former = insight_project("ads")
        world.put(former)
        world.put(insight_workload("web", port=80))
        assert await events_of(world)
        world.delete(former)
        assert await events_of(world) == []
    # A deletion that happened while insight was not running shows only in the later time of creation.
    async with insight_world(tmp_path, epoch="later") as world:
        world.put(insight_workload("web", port=80))
        await world.history.flush()
    clock = ManualClock(ManualClock().at.replace(hour=13))
    async with insight_world(tmp_path, epoch="latest", clock=clock) as world:
        world.put(insight_project("ads", "another", created_s=60))
        assert await events_of(world) == []
        assert await world.client.last_state_of(LastStateRequest(project="ads", workload="web")) is None


def numbered(project: str, number: int, at: str) -> KeyedEntry:
    entry = HistoryEntry(number=0, at=at, event="state", project=project, workload="web", uid="u")
    return KeyedEntry(f"{project}{number}", entry)


async def test_keeps_by_age_and_by_number_per_project(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        world.history.add_entries(numbered("ads", number, time_after(number)) for number in range(20))
        world.history.add_entries(numbered("search", number, time_after(number)) for number in range(4))
        await world.history.flush()

        async def kept() -> tuple[int, int]:
            found = [await entries_of(world, project=each) for each in ("ads", "search")]
            return len(found[0]), len(found[1])

        await world.store.transact(partial(prune, oldest="", max_project_entries=10))
        assert await kept() == (10, 4)
        await world.store.transact(partial(prune, oldest=time_after(2)))
        assert await kept() == (10, 2)
        await world.store.transact(partial(prune, oldest="", max_entries=3))
        assert sum(await kept()) == 3


async def test_keeps_a_bounded_number_of_deleted_workloads(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        for number in range(6):
            workload = insight_workload(f"w{number}", port=80)
            world.put(workload)
            world.clock.at = world.clock.at.replace(minute=number)
            world.delete(workload)
        await world.history.flush()
        await world.store.transact(partial(prune, oldest="", max_deleted_states=2))
        asked = [LastStateRequest(project="ads", workload=f"w{number}") for number in range(6)]
        assert [await world.client.last_state_of(each) is not None for each in asked] == [False] * 4 + [True] * 2


async def test_locked_database_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pincompute.insight.history_store.BUSY_TIMEOUT_MS", 1)
    async with insight_world(tmp_path) as world:
        other = sqlite3.connect(tmp_path / "insight.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        world.put(insight_workload("web", port=80))
        with pytest.raises(SQLAlchemyError):
            await world.history.flush()
        world.put(insight_workload("api", port=80))
        # What is stored is still read.
        assert await events_of(world) == []
        other.execute("ROLLBACK")
        other.close()
        assert await events_of(world) == ["created", "state"]
        assert await events_of(world, "api") == ["created", "state"]


async def test_full_database_keeps_the_newest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_PENDING", 5)
    async with insight_world(tmp_path) as world:

        async def fail_full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(world.store, "transact", fail_full)
            world.history.add_entries(numbered("ads", number, time_after(number)) for number in range(9))
            with pytest.raises(OSError, match="No space"):
                await world.history.flush()
            world.history.add_entries(numbered("ads", number, time_after(number)) for number in range(9, 11))
        assert [each.at for each in await entries_of(world)] == [time_after(number) for number in range(6, 11)]


async def test_entries_are_short_however_long_a_message_is(tmp_path: Path) -> None:
    async with insight_world(tmp_path) as world:
        web = insight_workload("web", port=80)
        world.put(web)
        world.put(insight_pod(web, 0, phase="Failed", message="x" * 100_000, conditions=[]))
        assert max(len(each.message) for each in await entries_of(world)) == 500


async def test_history_on_postgresql(postgresql: str, tmp_path: Path) -> None:
    async with insight_world(tmp_path, database=postgresql) as world:
        web = insight_workload("web", port=80)
        world.put(web)
        world.put(insight_pod(web, 0, phase="Failed", message="a\0b", conditions=[]))
        world.delete(web)
        assert await events_of(world) == ["created", "state", "failed", "deleted"]
        await world.store.transact(partial(prune, oldest="", max_entries=2))
        page = await world.store.transact(partial(read_history, request=HistoryRequest(project="ads")))
        assert [each.event for each in page.entries] == ["deleted", "failed"]
