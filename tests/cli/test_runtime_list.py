"""`pin runtime list`: states and workloads of runtimes, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.fleet import Fleet
from pincompute.main import command_group
from runtime_builders import DONE_AT, build_part, build_runtime, build_service

HOLD = {"runtime": 1, "until": "2099-01-01", "because": "ann: driver"}
RESOURCES = [
    build_part("logs-1"),
    build_part("logs-2"),
    *(build_runtime(number, "logs-1", roll={}, done=DONE_AT) for number in (1, 2, 3)),
    build_runtime(4, "logs-2", roll={}, wave="2 of 3"),
    build_service("web", status={"runtime": 3}),
    build_service("shop", status={"runtime": 3}),
    build_service("old", status={"runtime": 1}, hold=HOLD),
]


@pytest.fixture
def desk_with_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    fleet = Fleet(cluster_facts={}, resources=[{"kind": each.kind, **msgspec.to_builtins(each)} for each in RESOURCES])
    with fake_desk(tmp_path / "state", lambda _, path: (200, fleet) if path == "/v1/fleet" else (404, {})):
        yield


def run_runtime(*words: str) -> Result:
    return CliRunner().invoke(command_group(), ["runtime", *words], catch_exceptions=False)


@pytest.mark.usefixtures("desk_with_runtimes")
def test_lists_states_and_workloads() -> None:
    header, *rows = run_runtime("list").stdout.splitlines()
    assert header.split() == ["RUNTIME", "PARTS", "STATE", "WAVE", "WORKLOADS", "MESSAGE"]
    assert [each.split()[:5] for each in rows] == [
        ["1", "logs-1", "pinned", "-", "1"],
        ["2", "logs-1", "-", "-", "0"],
        ["3", "logs-1", "current", "-", "2"],
        ["4", "logs-2", "next", "2", "of"],
    ]
    assert run_runtime("status").stdout.splitlines()[:5] == [header, *rows]


@pytest.mark.usefixtures("desk_with_runtimes")
def test_output_for_programs() -> None:
    shown = json.loads(run_runtime("list", "-o", "json").stdout)
    assert [(each["number"], each["state"], each["workloads"], each["wave"]) for each in shown] == [
        (1, "pinned", 1, ""),
        (2, "", 0, ""),
        (3, "current", 2, ""),
        (4, "next", 0, "2 of 3"),
    ]
    assert run_runtime("list", "-o", "name").stdout.splitlines()[0] == "runtime/1"
