"""Results of batches in `pin get NAME -o json` and in `pin show NAME -o json`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus, TaskFailure
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.structs import Metadata
from pincompute.api.usage import WorkloadUsage
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import WorkloadDetail
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.cli import detail, get
from pincompute.cli.show import show
from pincompute.planning.views.summary import summarize

FAILURES = [TaskFailure(reason="TaskFailed", exit_code=3, message="no such month", tasks="1,4-5", count=3)]
ATTEMPTS = [
    AttemptStatus(number=1, tasks="0-5", began="2026-01-31T08:00:00Z", ended="2026-01-31T09:00:00Z", done=3, failed=3),
    AttemptStatus(number=2, tasks="4", began="2026-01-31T10:00:00Z", runtime=42),
]
RESIZE = PinterestJobSet(
    metadata=Metadata(name="resize", namespace="me", uid="u1"),
    spec=JobSetSpec(image="hello:dev", tasks=6),
    status=JobSetStatus(tasks=6, failures=FAILURES, attempts=ATTEMPTS),
)
WEB = PinterestService(metadata=Metadata(name="web", namespace="me", uid="u2"), spec=ServiceSpec(image="a", port=1))


class BatchPlatform:
    """A platform with a batch and a service, which records what is read one by one."""

    list_note = ""

    def __init__(self) -> None:
        self.workloads: dict[str, Workload] = {"resize": RESIZE, "web": WEB}
        self.read: list[str] = []

    async def list_summaries(self, _: str) -> list[WorkloadSummary]:
        return [summarize(each) for each in (RESIZE, WEB)]

    async def list_usage(self, _: str) -> list[WorkloadUsage]:
        return []

    async def get_workload(self, project: str, name: str) -> Workload:
        self.read.append(f"{project}/{name}")
        return self.workloads[name]

    async def describe(self, _: str, name: str) -> WorkloadDetail:
        workload = self.workloads[name]
        return WorkloadDetail(summary=summarize(workload), resource=msgspec.to_builtins(workload))


@pytest.fixture
def batch_platform() -> BatchPlatform:
    return BatchPlatform()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, batch_platform: BatchPlatform) -> Callable[..., Result]:
    @asynccontextmanager
    async def connect_to_batches(_: object) -> AsyncGenerator[BatchPlatform]:
        yield batch_platform

    monkeypatch.setattr(get, "connect", connect_to_batches)
    monkeypatch.setattr(detail, "connect", connect_to_batches)

    def invoke_in_project(command: click.Command, *words: str) -> Result:
        return CliRunner().invoke(command, ["--project", "me", *words])

    return invoke_in_project


def test_named_batch_has_its_failures_and_all_attempts(run: Any, batch_platform: BatchPlatform) -> None:
    batch, service = json.loads(run(get.get, "resize", "web", "-o", "json").stdout)
    assert batch["failures"] == [
        {"reason": "TaskFailed", "exitCode": 3, "message": "no such month", "tasks": "1,4-5", "count": 3}
    ]
    assert batch["attempts"] == msgspec.to_builtins(ATTEMPTS)
    assert batch["name"] == "resize"
    assert service.keys() == batch.keys() - {"failures", "attempts"}
    assert batch_platform.read == ["me/resize"]


def test_list_leaves_results_out(run: Any, batch_platform: BatchPlatform) -> None:
    assert [each for each in json.loads(run(get.get, "-o", "json").stdout) if "failures" in each] == []
    assert batch_platform.read == []


def test_results_are_those_of_the_workload_in_the_list(run: Any, batch_platform: BatchPlatform) -> None:
    later = msgspec.structs.replace(RESIZE, metadata=Metadata(name="resize", namespace="me", uid="u3"))
    for successor in (later, WEB):
        batch_platform.workloads["resize"] = successor
        (found,) = json.loads(run(get.get, "resize", "-o", "json").stdout)
        assert (found["uid"], "failures" in found) == ("u1", False)


def test_detail_has_results_in_the_status(run: Any) -> None:
    status = json.loads(run(show, "resize", "-o", "json").stdout)["resource"]["status"]
    assert status["failures"] == msgspec.to_builtins(FAILURES)
    assert status["attempts"] == msgspec.to_builtins(ATTEMPTS)
