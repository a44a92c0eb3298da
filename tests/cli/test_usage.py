"""Use of CPU and memory, in `pin get -o wide`, in `pin get -o json` and in `pin show`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.status import Progress, WorkloadStatus
from pincompute.api.structs import Metadata
from pincompute.api.usage import ResourceUsage, WorkloadUsage
from pincompute.api.workload_detail import ReplicaDetail, WorkloadDetail
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.cli import get
from pincompute.cli.show import format_detail
from pincompute.planning.views.summary import summarize

MIB = 2**20
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DEAD = "its kubelet does not answer (n2)"


def available_summary(name: str) -> WorkloadSummary:
    return WorkloadSummary(
        kind="PinterestService", project="me", name=name, uid=f"{name}-1", generation=1, revision=3, goal="Ready",
        ready=1, wanted=1, image="hello:dev", reason="Available", message=f"all of {name}",
        progress=Progress(ready=1),
    )  # fmt: skip


def usage_of(name: str, used: int | None, unknown: int = 0, note: str = "") -> WorkloadUsage:
    memory = None if used is None else used * MIB
    return WorkloadUsage(
        name=name,
        running=3,
        cpu=ResourceUsage(used=used, allotted=500, unknown=unknown),
        memory=ResourceUsage(used=memory, allotted=512 * MIB, unknown=unknown),
        restarts=4,
        note=note,
    )


class FakePlatform:
    list_note = ""

    def __init__(self) -> None:
        self.asked = 0
        self.usages: list[WorkloadUsage] | Refused = [
            usage_of("all", 1200),
            usage_of("dead", None, 3, DEAD),
            usage_of("part", 120, 1, DEAD),
        ]

    async def list_summaries(self, project: str) -> list[WorkloadSummary]:
        assert project == "me"
        return [available_summary(name) for name in ("all", "dead", "idle", "part")]

    async def list_usage(self, project: str) -> list[WorkloadUsage]:
        assert project == "me"
        self.asked += 1
        if isinstance(self.usages, Refused):
            raise self.usages
        return self.usages


@pytest.fixture
def fake_platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, fake_platform: FakePlatform) -> Any:
    @asynccontextmanager
    async def connect(_: object) -> AsyncGenerator[FakePlatform]:
        yield fake_platform

    monkeypatch.setattr(get, "connect", connect)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(get.get, ["--project", "me", *words])

    return invoke


def test_wide_list_has_use_before_the_message(run: Any) -> None:
    result = run("-o", "wide")
    assert result.stdout.splitlines() == [
        "NAME    KIND     READY  REASON     ADDRESS  CPU      MEMORY   RESTARTS  MESSAGE",
        "all@3   Service  1/1    Available           1.2      1.2Gi    4         all of all",
        "dead@3  Service  1/1    Available           unknown  unknown  4         all of dead",
        "idle@3  Service  1/1    Available           -        -        -         all of idle",
        "part@3  Service  1/1    Available           >=120m   >=120Mi  4         all of part",
    ]
    assert result.stderr == f"use of dead is unknown: {DEAD}; and of 1 more: pin get -o json\n"


def test_list_asks_no_nodes_by_default(run: Any, fake_platform: FakePlatform) -> None:
    assert run().stdout.splitlines()[0] == "NAME    KIND     READY  REASON     ADDRESS"
    assert run("-o", "name").exit_code == 0
    assert fake_platform.asked == 0


def test_json_has_the_summary_and_the_use(run: Any) -> None:
    found = {each["name"]: each for each in json.loads(run("-o", "json").stdout)}
    assert found["all"]["usage"]["cpu"] == {
        "used": 1200, "allotted": 500, "requested": 0, "limit": None, "unknown": 0,
    }  # fmt: skip
    assert (found["dead"]["usage"]["cpu"]["used"], found["dead"]["usage"]["note"]) == (None, DEAD)
    assert found["idle"]["usage"] is None
    assert {*msgspec.to_builtins(available_summary("all"))} == {*found["all"]} - {"usage"}


def test_list_is_shown_where_the_use_cannot_be_read(run: Any, fake_platform: FakePlatform) -> None:
    fake_platform.usages = Refused(Problem(CLUSTER_REFUSED, "pods is forbidden"))
    result = run("-o", "wide")
    assert result.exit_code == 0
    assert "all@3   Service  1/1    Available           unknown  unknown  unknown   all of all" in result.stdout
    assert result.stderr.startswith("use of all is unknown: pods is forbidden")


def detail_of(usage: WorkloadUsage | None, *replicas: ReplicaDetail, simulated: bool = False) -> str:
    workload = PinterestService(
        metadata=Metadata(name="hello", namespace="me", creation_timestamp="2026-01-31T11:00:00Z"),
        spec=ServiceSpec(image="hello:dev", port=8080),
        status=WorkloadStatus(simulated=simulated),
    )
    detail = WorkloadDetail(
        summary=summarize(workload), resource=msgspec.to_builtins(workload), replicas=list(replicas), usage=usage
    )
    return format_detail(detail, NOW)


@pytest.mark.parametrize(
    ("usage", "line"),
    [
        (usage_of("hello", 120), "  uses       120m of 500m cpu, 120Mi of 512Mi memory"),
        (
            usage_of("hello", 120, 1, DEAD),
            f"  uses       120m of 500m cpu, 120Mi of 512Mi memory; 1 of 3 unknown: {DEAD}",
        ),
        (usage_of("hello", None, 3, DEAD), f"  uses       unknown: {DEAD}"),
        (
            msgspec.structs.replace(usage_of("hello", 0), cpu=ResourceUsage(), memory=ResourceUsage(used=5)),
            "  uses       unknown cpu, 5 memory",
        ),
    ],
)
def test_show_has_a_line_of_use_under_the_headline(usage: WorkloadUsage, line: str) -> None:
    assert detail_of(usage).splitlines()[1] == line


@pytest.mark.parametrize(
    ("usage", "simulated"), [(None, False), (WorkloadUsage(name="hello"), False), (usage_of("hello", None, 3), True)]
)
def test_show_has_no_line_of_use_where_nothing_runs(usage: WorkloadUsage | None, *, simulated: bool) -> None:
    assert "uses" not in detail_of(usage, simulated=simulated)


def test_replicas_have_columns_of_use_if_they_fit() -> None:
    replicas = [
        ReplicaDetail(
            name=f"hello-{number}", node="n1", state="Ready", since="2026-01-31T11:59:00Z", cpu_millicores=cpu,
            memory_bytes=cpu and 3 * MIB,
        )
        for number, cpu in enumerate((7, None))
    ]  # fmt: skip
    assert detail_of(None, *replicas).splitlines()[-3:] == [
        "  NAME     NODE  STATE  RESTARTS  AGE      CPU   MEMORY",
        "  hello-0  n1    Ready         0   1m       7m      3Mi",
        "  hello-1  n1    Ready         0   1m  unknown  unknown",
    ]
    long_name = msgspec.structs.replace(replicas[0], name="hello-" + "x" * 50)
    assert "CPU" not in detail_of(None, long_name, replicas[1])
    assert "CPU" not in detail_of(None, replicas[1])
