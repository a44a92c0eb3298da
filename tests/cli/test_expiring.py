"""`pin get --expiring` and `--unowned`: what expires within a time span, and what has no owner or no workload."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pincompute.api.status import Progress
from pincompute.api.unowned import UnownedObject, UnownedObjects
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.cli import get, unowned

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def summary_of(name: str, expires: str = "", reason: str = "Available") -> WorkloadSummary:
    return WorkloadSummary(
        kind="PinterestService", project="me", name=name, uid=f"{name}-1", generation=1, revision=3, goal="Ready",
        ready=1, wanted=1, image="hello:dev", reason=reason, expires=expires, progress=Progress(ready=1),
    )  # fmt: skip


WORKLOADS = [
    summary_of("always"),
    summary_of("in-eight-days", "2026-02-08T12:00:00Z"),
    summary_of("in-six-days", "2026-02-06T13:00:00Z"),
    summary_of("over", "2026-01-30T12:00:00Z", "Expired"),
    summary_of("soon", "2026-01-31T15:30:00Z", "ExpiresSoon"),
]


class StoppedClock:
    def now(self) -> datetime:
        return NOW


class FakePlatform:
    list_note = ""

    async def list_summaries(self, project: str) -> list[WorkloadSummary]:
        assert project == "me"
        return WORKLOADS

    async def list_unowned(self, project: str) -> UnownedObjects:
        assert project == "me"
        claim = UnownedObject(
            kind="PersistentVolumeClaim", name="data-db-0", workload="db", why="its workload was deleted",
            since="2026-01-29T12:00:00Z",
        )  # fmt: skip
        return UnownedObjects(objects=[claim], left_out=3)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    @asynccontextmanager
    async def connect(_: object) -> AsyncGenerator[FakePlatform]:
        yield FakePlatform()

    monkeypatch.setattr(get, "connect", connect)
    monkeypatch.setattr(get, "SystemClock", StoppedClock)
    monkeypatch.setattr(unowned, "connect", connect)
    monkeypatch.setattr(unowned, "SystemClock", StoppedClock)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(get.get, ["--project", "me", *words])

    return invoke


def test_lists_seven_days_in_order_by_default(run: Any) -> None:
    assert run("--expiring").output.splitlines() == [
        "NAME           KIND     READY  REASON       EXPIRES                  IN",
        "over@3         Service  1/1    Expired      2026-01-30T12:00:00Z      -",
        "soon@3         Service  1/1    ExpiresSoon  2026-01-31T15:30:00Z  3h30m",
        "in-six-days@3  Service  1/1    Available    2026-02-06T13:00:00Z   6d1h",
    ]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--expiring", "1h"), ["over"]),
        (("--expiring", "30d"), ["in-eight-days", "in-six-days", "over", "soon"]),
        (("--expiring", "--kind", "jobset"), []),
        (("--expiring", "30d", "soon", "always"), ["soon"]),
    ],
)
def test_other_filters_and_spans_apply(run: Any, words: tuple[str, ...], names: list[str]) -> None:
    assert run(*words, "--output", "name").output.split() == [f"service/{each}" for each in names]


def test_one_named_workload_is_listed_and_not_described(run: Any) -> None:
    assert run("soon", "--expiring").output.splitlines()[1].startswith("soon@3")


def test_says_that_nothing_expires(run: Any) -> None:
    assert "project me has no matching workloads        next: pin get" in run("--expiring", "--kind", "jobset").output


@pytest.mark.parametrize("span", ["soon", "7", "7w", "1234567d"])
def test_refuses_other_spans(run: Any, span: str) -> None:
    result = run("--expiring", span)
    assert result.exit_code == 2
    assert "must be a time span such as 30s, 10m, 2h or 1d" in result.output


def test_lists_unowned_objects_and_counts_the_rest(run: Any) -> None:
    assert run("--unowned").output.splitlines() == [
        "KIND                   NAME       WORKLOAD  WHY                       AGE",
        "PersistentVolumeClaim  data-db-0  db        its workload was deleted   2d",
        "and 3 more",
    ]
    assert run("--unowned", "--output", "name").output == "PersistentVolumeClaim/data-db-0\n"


@pytest.mark.parametrize("words", [("web",), ("--wrong",), ("--kind", "service"), ("--expiring",), ("--watch",)])
def test_unowned_lists_whole_projects_only(run: Any, words: tuple[str, ...]) -> None:
    assert "cannot be combined" in str(run("--unowned", *words).exception)
