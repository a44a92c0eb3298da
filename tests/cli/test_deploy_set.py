"""Several deployed at once: sent as one text, placed where they stand, and followed to the ends of all."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.documents import read
from pincompute.api.logs import Copies, Line, Said, Wanted
from pincompute.api.receipt import Outcome, Receipt
from pincompute.api.status import Progress
from pincompute.api.summary import Sight, Summary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CRASH_LOOP, DOCUMENT_INVALID
from pincompute.cli import deploy_set, follow_all
from pincompute.cli.deploy_set import deploy_set as deploy
from pincompute.cli.files import Joined, several
from pincompute.cli.follow import Timer
from pincompute.cli.target import Target

TARGET = Target("main", "me", "", "")
RUNS = Progress(wanted=2, scheduled=2, started=2)


def seen(name: str, *, generation: int = 1, done: bool = False, reason: str = "", **others: Any) -> Summary:
    return Summary(
        kind="PinterestService", project="me", name=name, uid=name, generation=generation, revision=generation,
        goal="Ready", ready=2 if done else 0, wanted=2, image="hello:dev", done=done, failed=bool(reason),
        reason=reason or "Progressing", address=f"http://{name}.me", **others,
    )  # fmt: skip


def outcome(name: str, *, summary: bool = True, **others: Any) -> Outcome:
    receipt = Receipt(
        id=f"s-{name}", at="", who="", project="me", kind="", name=name, verb="deploy", state="", url="", **others
    )
    return Outcome(receipt, seen(name) if summary else None)


class Port:
    """Tells its sights one by one, and then nothing more."""

    def __init__(self, outcomes: list[Outcome], *sights: Sight) -> None:
        self.outcomes = outcomes
        self.sights = sights
        self.told = asyncio.Event()

    async def submit_set(self, *_: object) -> list[Outcome]:
        return self.outcomes

    async def watch(self, _: str) -> AsyncGenerator[Sight]:
        for each in self.sights:
            yield each
            # Whoever follows one of them has heard of it.
            await asyncio.sleep(0)
        self.told.set()
        await asyncio.Event().wait()

    async def logs(self, _: str, __: str, wanted: Wanted) -> AsyncGenerator[Said]:
        yield Copies(["web-1"])
        for number in range(30 - wanted.tail, 30):
            yield Line("web-1", "", f"line {number}")

    async def images(self) -> list[str]:
        return []


def connected(monkeypatch: pytest.MonkeyPatch, port: Port) -> None:
    @asynccontextmanager
    async def connect(_: Target) -> AsyncGenerator[Any]:
        yield port

    monkeypatch.setattr(deploy_set, "connect", connect)


BOTH = [outcome("web"), outcome("api")]
WELL = (
    Sight(now=[seen("web"), seen("api", progress=RUNS)]),
    Sight(now=[seen("web", done=True)]),
    Sight(now=[seen("api", done=True)]),
)


async def test_a_pipe_gets_a_line_for_each_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connected(monkeypatch, Port(BOTH, *WELL))
    await deploy(TARGET, [], None, 60.0, "")
    told = capsys.readouterr()
    assert re.sub(r"\d\.\d s", "T", told.err).splitlines() == [
        "api@1  scheduled T", "api@1  started T",
        "web@1  scheduled T", "web@1  started T", "web@1  ready T",
        "api@1  ready T",
    ]  # fmt: skip
    assert told.out.splitlines() == [
        "web@1  http://web.me        next: pin logs web",
        "api@1  http://api.me        next: pin logs api",
    ]


async def test_a_terminal_is_drawn_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    connected(monkeypatch, Port(BOTH, *WELL))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((60, 10)))
    await deploy(TARGET, [], None, 60.0, "")
    first, *_, last = re.split(r"\033\[2A\033\[J", capsys.readouterr().err)
    assert first == "web@1\napi@1\n"
    assert re.sub(r"\d\.\d s", "T", last) == (
        "web@1  scheduled T  started T  ready T\napi@1  scheduled T  started T  ready T\n"
    )


async def test_the_worst_outcome_is_that_of_the_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is well is told first."""
    refused = Refused(Problem(DOCUMENT_INVALID, "the cluster will not have it")).json()["errors"]
    outcomes = [*BOTH, outcome("db", summary=False, errors=refused), outcome("late", summary=False, waits="away")]
    crash = seen("web", reason=CRASH_LOOP.code, message="it crashes")
    connected(monkeypatch, Port(outcomes, Sight(now=[crash, seen("api", done=True)])))
    with pytest.raises(Refused) as raised:
        await deploy(TARGET, [], None, 60.0, "")
    assert [each.reason.code for each in raised.value.problems] == ["CrashLoop", "DocumentInvalid", "OnItsWay"]
    assert raised.value.problems[0].note.splitlines() == [f"| line {number}" for number in range(10, 30)]
    told = capsys.readouterr()
    assert told.out == "api@1  http://api.me        next: pin logs api\n"
    assert {"db     DocumentInvalid", "late   OnItsWay", "web@1  CrashLoop"} <= set(told.err.splitlines())


async def test_what_was_before_does_not_count_and_what_goes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = Outcome(BOTH[0].receipt, seen("web", generation=2))
    port = Port([newer], Sight(now=[seen("web", done=True)]), Sight(gone=["web"]))
    connected(monkeypatch, port)
    with pytest.raises(Refused, match="web@2 was deleted while it was followed"):
        await deploy(TARGET, [], None, 60.0, "")


def test_whoever_interrupts_leaves_and_all_of_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    async def interrupted() -> None:
        port, this = Port(BOTH, *WELL[:1]), asyncio.current_task()
        assert this is not None
        leaving = asyncio.create_task(port.told.wait())
        leaving.add_done_callback(lambda _: this.cancel())
        await follow_all.follow_all(port, BOTH, Timer.start(SystemClock(), 60.0))  # type: ignore[arg-type]

    with pytest.raises(SystemExit) as left:
        asyncio.run(interrupted())
    assert left.value.code == 130
    assert "all of it goes on by itself        see: pin get" in capsys.readouterr().err


async def test_who_does_not_wait_is_told_what_was_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connected(monkeypatch, Port(BOTH))
    await deploy(TARGET, [], None, None, "")
    assert capsys.readouterr().out.splitlines() == [
        "web@1  submitted        next: pin get web",
        "api@1  submitted        next: pin get api",
    ]


documents = st.sampled_from(
    [
        "a: 1\n",
        "a: 1\nb:\n  - c\n",
        "--- {a: 1}\n",
        "a: |+\n  x\n\n",
        "# ä\na: 1 # b\n",
        "  a: 1\n  b: 2\n",
        "---\na: x",
    ]
)


@given(files=st.lists(st.lists(documents, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_is_sent_reads_as_the_files_and_each_line_is_found_again(files: Sequence[Sequence[str]]) -> None:
    texts = {f"{number}.yaml": "---\n".join(each if each.endswith("\n") else f"{each}\n" for each in file)
             for number, file in enumerate(files)}  # fmt: skip
    there = [document for name, text in texts.items() for document in read(text, name)]
    joined = Joined.of(there)
    sent = read(joined.text)
    assert [each.content for each in sent] == [each.content for each in there]
    for was, now in zip(there, sent, strict=True):
        places = [joined.placed(Problem(DOCUMENT_INVALID, "", Where(line=line))) for line in now.lines.values()]
        assert [each.where for each in places] == [Where(was.file, line) for line in was.lines.values()]


def test_a_set_is_a_folder_or_several_files_or_one_of_several_documents(tmp_path: Path) -> None:
    one, two = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text("a: 1\n")
    two.write_text("b: 1\n---\nc: 1\n")
    assert several([one]) == []
    assert [list(each.content) for each in several([two])] == [["b"], ["c"]]
    assert [list(each.content) for each in several([tmp_path])] == [["a"], ["b"], ["c"]]
    assert len(several([two, one])) == 3
    two.write_text("a: [")
    # By itself it is the desk's to refuse, on record.
    assert several([two]) == []
    with pytest.raises(Refused, match="not YAML"):
        several([tmp_path])
