"""What somebody sees who goes on looking: line by line in a pipe, and drawn over itself on a terminal."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pincompute.api.summary import Sight, Summary
from pincompute.base.problem import Refused
from pincompute.cli import watch
from pincompute.cli.looking import Looking
from pincompute.cli.target import Target
from pincompute.cli.watch import Screen, look_on
from pincompute.cli.word import word

TARGET = Target("main", "me", "", "")


def seen(name: str, ready: int = 0, *, failed: bool = False, kind: str = "PinterestService", seen: int = 1) -> Summary:
    return Summary(
        kind=kind, project="me", name=name, uid=f"{name}-1", generation=seen, revision=1, goal="Ready",
        ready=ready, wanted=2, image="hello:dev", failed=failed,
    )  # fmt: skip


class Port:
    def __init__(self, *sights: Sight) -> None:
        self._sights = sights

    async def watch(self, _: str) -> AsyncGenerator[Sight]:
        for each in self._sights:
            yield each


async def told(monkeypatch: pytest.MonkeyPatch, looking: Looking, *sights: Sight) -> None:
    @asynccontextmanager
    async def connect(_: Target) -> AsyncGenerator[Any]:
        yield Port(*sights)

    monkeypatch.setattr(watch, "connect", connect)
    await look_on(TARGET, looking)


def looking(*names: str, kind: str = "", wrong: bool = False, output: str = "") -> Looking:
    return Looking(tuple(map(word, names)), kind, wrong, output)


SIGHTS = (
    Sight(now=[seen("api"), seen("web")]),
    Sight(now=[seen("web", 2)]),
    # Nothing of it is to be seen.
    Sight(now=[seen("web", 2, seen=2)]),
    Sight(now=[seen("a-name-of-a-later-one", failed=True)], gone=["api"]),
)


async def test_a_pipe_gets_a_line_for_each_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await told(monkeypatch, looking(), *SIGHTS)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "KIND", "READY", "REASON", "ADDRESS"]
    assert [" ".join(each.split()) for each in lines] == [
        "api@1 Service 0/2 Progressing",
        "web@1 Service 0/2 Progressing",
        "web@1 Service 2/2 Progressing",
        "a-name-of-a-later-one@1 Service 0/2 Progressing",
        "api@1 Service 0/2 Gone",
    ]
    assert {line.index("Service") for line in lines[:3]} == {head.index("KIND")}


async def test_only_what_is_asked_for_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for asked, names in (
        (looking("web"), "web@1 web@1"),
        (looking(wrong=True), "a-name-of-a-later-one@1"),
        (looking(kind="PinterestJobSet"), ""),
    ):
        await told(monkeypatch, asked, *SIGHTS)
        assert " ".join(line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]) == names
    with pytest.raises(Refused, match="no workload 'wob'"):
        await told(monkeypatch, looking("wob"), *SIGHTS)
    with pytest.raises(Refused, match="jobset"):
        await told(monkeypatch, looking("jobset/web"), *SIGHTS)


async def test_programs_get_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    await told(monkeypatch, looking(output="json"), *SIGHTS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert '"reason":"Gone"' in lines[-1]


def test_a_terminal_is_drawn_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: (10, 4))
    screen = Screen()
    screen.draw("first\na line that is too long")
    screen.draw("1\n2\n3\n4\n5")
    screen.draw("last")
    assert re.split(r"\033\[(\d)A\033\[J", capsys.readouterr().out) == [
        "first\na line tha\n", "2", "1\n2\n3\n", "3", "last\n",
    ]  # fmt: skip
