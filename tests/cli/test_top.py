"""`pin top`: use against request and limit, of workloads and of replicas."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pincompute.api.project_view import ProjectSummary
from pincompute.api.usage import ResourceUsage, WorkloadUsage
from pincompute.api.workload_detail import ReplicaDetail, WorkloadDetail
from pincompute.api.workload_summary import Progress, WorkloadSummary
from pincompute.base.problem import Refused
from pincompute.cli import top

MIB = 2**20


def measured_usage(
    name: str, millicores: int | None, memory: int | None, *, unknown: int = 0, note: str = "", running: int = 3
) -> WorkloadUsage:
    return WorkloadUsage(
        name=name,
        running=running,
        cpu=ResourceUsage(used=millicores, allotted=500, requested=500, limit=None, unknown=unknown),
        memory=ResourceUsage(used=memory, allotted=512 * MIB, requested=128 * MIB, limit=512 * MIB, unknown=unknown),
        restarts=2,
        note=note,
    )


class MeasuringPlatform:
    """Two projects; each measurement of `me` takes the next answer."""

    def __init__(self) -> None:
        self.usages: dict[str, list[WorkloadUsage]] = {
            "me": [
                measured_usage("dead", None, None, unknown=3, note="its kubelet does not answer (n2)"),
                measured_usage("ended", None, None, running=0),
                measured_usage("small", 120, 300 * MIB),
                measured_usage("large", 1200, 200 * MIB, unknown=1),
            ],
            "shop": [measured_usage("web", 700, MIB)],
        }
        self.replicas: list[ReplicaDetail] = []

    async def list_projects(self) -> list[ProjectSummary]:
        return [ProjectSummary(project=name) for name in self.usages]

    async def list_usage(self, project: str) -> list[WorkloadUsage]:
        return self.usages[project]

    async def describe(self, project: str, name: str) -> WorkloadDetail:
        assert project == "me"
        summary = WorkloadSummary(
            kind="PinterestService", project=project, name=name, uid="1", generation=1, revision=1, goal="Ready",
            ready=1, wanted=1, image="web:1", reason="Available", message="", progress=Progress(ready=1),
        )  # fmt: skip
        return WorkloadDetail(summary=summary, resource={}, replicas=self.replicas)


@pytest.fixture
def measuring_platform() -> MeasuringPlatform:
    return MeasuringPlatform()


@pytest.fixture
def run_top(monkeypatch: pytest.MonkeyPatch, measuring_platform: MeasuringPlatform) -> Any:
    @asynccontextmanager
    async def connect_to_fake(_: object) -> AsyncGenerator[MeasuringPlatform]:
        yield measuring_platform

    monkeypatch.setattr(top, "connect", connect_to_fake)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(top.top, ["--project", "me", *words])

    return invoke


def test_lists_running_workloads_with_the_highest_cpu_first(run_top: Any) -> None:
    result = run_top()
    assert result.stdout.splitlines() == [
        "NAME       CPU   REQ  LIMIT   MEMORY    REQ  LIMIT  RESTARTS",
        "large    >=1.2  500m      -  >=200Mi  128Mi  512Mi         2",
        "small     120m  500m      -    300Mi  128Mi  512Mi         2",
        "dead   unknown  500m      -  unknown  128Mi  512Mi         2",
    ]
    assert result.stderr == "use of dead is unknown: its kubelet does not answer (n2)\n"


def test_sorts_by_memory(run_top: Any) -> None:
    names = [line.split()[0] for line in run_top("--sort-by", "memory").stdout.splitlines()[1:]]
    assert names == ["small", "large", "dead"]


def test_sorts_workloads_of_all_projects_together(run_top: Any) -> None:
    rows = [line.split()[:2] for line in run_top("-A").stdout.splitlines()]
    assert rows == [["PROJECT", "NAME"], ["me", "large"], ["shop", "web"], ["me", "small"], ["me", "dead"]]


def test_shows_running_replicas_of_one_workload(run_top: Any, measuring_platform: MeasuringPlatform) -> None:
    usages = [
        measured_usage("web-1", 5, MIB, running=1),
        measured_usage("web-2", 9, MIB, running=1),
        measured_usage("web-3", None, None, running=0),
    ]
    # A desk of an earlier version sends no use of replicas.
    measuring_platform.replicas = [
        *(ReplicaDetail(name=each.name, usage=each) for each in usages),
        ReplicaDetail(name="web-4"),
    ]
    assert [line.split()[0] for line in run_top("service/web").stdout.splitlines()] == ["NAME", "web-2", "web-1"]
    measuring_platform.replicas = []
    assert run_top("web").stderr == "web has no running replicas        next: pin why web\n"
    assert isinstance(run_top("jobset/web").exception, Refused)


def test_json_has_project_request_and_limit(run_top: Any) -> None:
    first = json.loads(run_top("-A", "-o", "json").stdout)[1]
    assert (first["project"], first["name"], first["running"]) == ("shop", "web", 3)
    assert first["cpu"] == {"used": 700, "allotted": 500, "requested": 500, "limit": None, "unknown": 0}


def test_worst_figures_fit_80_columns(run_top: Any, measuring_platform: MeasuringPlatform) -> None:
    usage = measured_usage("n" * 22, 999, 1023 * MIB, unknown=1)
    measuring_platform.usages["me"] = [usage, measured_usage("dead", None, None, unknown=3)]
    assert max(map(len, run_top().stdout.splitlines())) <= 80


def test_project_without_running_workloads_has_a_hint(run_top: Any, measuring_platform: MeasuringPlatform) -> None:
    measuring_platform.usages["me"] = [measured_usage("ended", None, None, running=0)]
    result = run_top()
    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr == "project me has no running workloads        next: pin get\n"


@pytest.mark.parametrize("words", [("web", "-A"), ("--watch", "-o", "yaml")])
def test_refuses_options_that_contradict_each_other(run_top: Any, words: tuple[str, ...]) -> None:
    assert isinstance(run_top(*words).exception, Refused)


def test_watch_measures_again_after_the_interval(
    run_top: Any, measuring_platform: MeasuringPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        measuring_platform.usages["me"] = [measured_usage("small", 130, MIB)]
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(top.asyncio, "sleep", sleep)
    lines = run_top("--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)[0]["name"] for line in lines if line.startswith("[")] == ["large", "small"]
    assert slept == [top.WATCH_INTERVAL_S] * 2


def test_name_with_escape_codes_is_printed_harmlessly() -> None:
    usage = top.ListedUsage(name="web\x1b[2J", running=1, project="me")
    assert "\x1b" not in top.usage_table([usage])
