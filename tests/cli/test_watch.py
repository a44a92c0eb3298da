"""`pin get --watch`: a line for each change in a pipe, and a redrawn table on a terminal."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from pincompute.api.status import Progress
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.problem import Refused
from pincompute.cli import watch
from pincompute.cli.list_filter import ListFilter
from pincompute.cli.target import Target
from pincompute.cli.watch import Screen, watch_workloads
from pincompute.cli.workload_ref import parse_workload_ref

TARGET = Target("main", "me", "", "")


def summary_of(
    name: str, ready: int = 0, *, failed: bool = False, kind: str = "PinterestService", generation: int = 1
) -> WorkloadSummary:
    return WorkloadSummary(
        kind=kind, project="me", name=name, uid=f"{name}-1", generation=generation, revision=1, goal="Ready",
        ready=ready, wanted=2, image="hello:dev", failed=failed, progress=Progress(ready=ready),
    )  # fmt: skip


class FakePlatform:
    list_note = ""

    def __init__(self, *changes: WorkloadChange) -> None:
        self._changes = changes

    async def watch(self, _: str) -> AsyncGenerator[WorkloadChange]:
        for change in self._changes:
            yield change


async def run_watch(monkeypatch: pytest.MonkeyPatch, list_filter: ListFilter, *changes: WorkloadChange) -> None:
    @asynccontextmanager
    async def connect(_: Target) -> AsyncGenerator[Any]:
        yield FakePlatform(*changes)

    monkeypatch.setattr(watch, "connect", connect)
    await watch_workloads(TARGET, list_filter)


def filter_of(*names: str, kind: str = "", wrong: bool = False, output: str = "") -> ListFilter:
    return ListFilter(tuple(map(parse_workload_ref, names)), kind, wrong, output)


CHANGES = (
    WorkloadChange(current=[summary_of("api"), summary_of("web")]),
    WorkloadChange(current=[summary_of("web", 2)]),
    # Changes nothing that a table shows.
    WorkloadChange(current=[summary_of("web", 2, generation=2)]),
    WorkloadChange(current=[summary_of("a-name-of-a-later-one", failed=True)], deleted=["api"]),
)


async def test_prints_a_line_for_each_visible_change_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_watch(monkeypatch, filter_of(), *CHANGES)
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "KIND", "READY", "REASON", "ADDRESS"]
    assert [" ".join(each.split()) for each in lines] == [
        "api@1 Service 0/2 Progressing",
        "web@1 Service 0/2 Progressing",
        "web@1 Service 2/2 Progressing",
        "a-name-of-a-later-one@1 Service 0/2 Progressing",
        "api@1 Service 0/2 Gone",
    ]
    assert {line.index("Service") for line in lines[:3]} == {header.index("KIND")}


async def test_prints_only_matching_workloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for list_filter, labels in (
        (filter_of("web"), "web@1 web@1"),
        (filter_of(wrong=True), "a-name-of-a-later-one@1"),
        (filter_of(kind="PinterestJobSet"), ""),
    ):
        await run_watch(monkeypatch, list_filter, *CHANGES)
        assert " ".join(line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]) == labels
    with pytest.raises(Refused, match="no workload 'wob'"):
        await run_watch(monkeypatch, filter_of("wob"), *CHANGES)
    with pytest.raises(Refused, match="jobset"):
        await run_watch(monkeypatch, filter_of("jobset/web"), *CHANGES)


async def test_prints_every_change_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    await run_watch(monkeypatch, filter_of(output="json"), *CHANGES)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert '"reason":"Gone"' in lines[-1]


def test_screen_draws_over_its_last_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", Mock(return_value=(10, 4)))
    screen = Screen()
    screen.redraw("first\na line that is too long")
    screen.redraw("1\n2\n3\n4\n5")
    screen.redraw("last")
    assert re.split(r"\033\[(\d)A\033\[J", capsys.readouterr().out) == [
        "first\na line tha\n", "2", "1\n2\n3\n", "3", "last\n",
    ]  # fmt: skip
