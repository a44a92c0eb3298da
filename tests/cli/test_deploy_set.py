"""Deploys of several documents: sent as one text, errors located in their files, and all followed."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, strategies as st

from pincompute.api.documents import read_documents
from pincompute.api.logs import LogItem, LogLine, LogQuery, LogReplicas
from pincompute.api.receipt import SubmissionOutcome, SubmissionReceipt
from pincompute.api.status import Progress
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CRASH_LOOP, DOCUMENT_INVALID
from pincompute.cli import deploy_set, follow_set
from pincompute.cli.deploy_set import deploy_set as deploy
from pincompute.cli.files import JoinedDocuments, read_file_set
from pincompute.cli.follow import FollowTimer
from pincompute.cli.target import Target

TARGET = Target("main", "me", "", "")
STARTED = Progress(wanted=2, scheduled=2, started=2)


def summary_of(
    name: str, *, generation: int = 1, done: bool = False, reason: str = "", **others: Any
) -> WorkloadSummary:
    return WorkloadSummary(
        kind="PinterestService", project="me", name=name, uid=name, generation=generation, revision=generation,
        goal="Ready", ready=2 if done else 0, wanted=2, image="hello:dev", done=done, failed=bool(reason),
        reason=reason or "Progressing", address=f"http://{name}.me", **others,
    )  # fmt: skip


def outcome_of(name: str, *, delivered: bool = True, **others: Any) -> SubmissionOutcome:
    receipt = SubmissionReceipt(
        id=f"s-{name}",
        accepted_at="",
        caller="",
        project="me",
        kind="",
        name=name,
        verb="deploy",
        state="",
        url="",
        **others,
    )
    return SubmissionOutcome(receipt, summary_of(name) if delivered else None)


class FakePlatform:
    """Streams prepared changes one by one, and then stays silent."""

    def __init__(self, outcomes: list[SubmissionOutcome], *changes: WorkloadChange) -> None:
        self.outcomes = outcomes
        self.changes = changes
        self.all_sent = asyncio.Event()

    async def submit_set(self, *_: object) -> list[SubmissionOutcome]:
        return self.outcomes

    async def watch(self, _: str) -> AsyncGenerator[WorkloadChange]:
        for change in self.changes:
            yield change
            # Lets the followers of single workloads handle the change first.
            await asyncio.sleep(0)
        self.all_sent.set()
        await asyncio.Event().wait()

    async def logs(self, _: str, __: str, query: LogQuery) -> AsyncGenerator[LogItem]:
        yield LogReplicas(["web-1"])
        for number in range(30 - query.tail, 30):
            yield LogLine("web-1", "", f"line {number}")

    async def list_images(self) -> list[str]:
        return []


def connect_to(monkeypatch: pytest.MonkeyPatch, platform: FakePlatform) -> None:
    @asynccontextmanager
    async def connect(_: Target) -> AsyncGenerator[Any]:
        yield platform

    monkeypatch.setattr(deploy_set, "connect", connect)


OUTCOMES = [outcome_of("web"), outcome_of("api")]
CHANGES_TO_READY = (
    WorkloadChange(current=[summary_of("web"), summary_of("api", progress=STARTED)]),
    WorkloadChange(current=[summary_of("web", done=True)]),
    WorkloadChange(current=[summary_of("api", done=True)]),
)


async def test_prints_a_line_for_each_step_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect_to(monkeypatch, FakePlatform(OUTCOMES, *CHANGES_TO_READY))
    await deploy(TARGET, [], None, 60.0, "")
    output = capsys.readouterr()
    assert re.sub(r"\d\.\d s", "T", output.err).splitlines() == [
        "api@1  scheduled T", "api@1  started T",
        "web@1  scheduled T", "web@1  started T", "web@1  ready T",
        "api@1  ready T",
    ]  # fmt: skip
    assert output.out.splitlines() == [
        "web@1  http://web.me        next: pin logs web",
        "api@1  http://api.me        next: pin logs api",
    ]


async def test_redraws_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    connect_to(monkeypatch, FakePlatform(OUTCOMES, *CHANGES_TO_READY))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", Mock(return_value=os.terminal_size((60, 10))))
    await deploy(TARGET, [], None, 60.0, "")
    first, *_, last = re.split(r"\033\[2A\033\[J", capsys.readouterr().err)
    assert first == "web@1\napi@1\n"
    assert re.sub(r"\d\.\d s", "T", last) == (
        "web@1  scheduled T  started T  ready T\napi@1  scheduled T  started T  ready T\n"
    )


async def test_raises_problems_of_all_failed_workloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of the others are printed before."""
    refused = Refused(Problem(DOCUMENT_INVALID, "rejected by the cluster")).json()["errors"]
    outcomes = [
        *OUTCOMES,
        outcome_of("db", delivered=False, errors=refused),
        outcome_of("late", delivered=False, last_delivery_error="cluster unreachable"),
    ]
    crash = summary_of("web", reason=CRASH_LOOP.code, message="it crashes")
    connect_to(monkeypatch, FakePlatform(outcomes, WorkloadChange(current=[crash, summary_of("api", done=True)])))
    with pytest.raises(Refused) as raised:
        await deploy(TARGET, [], None, 60.0, "")
    assert [each.reason.code for each in raised.value.problems] == ["CrashLoop", "DocumentInvalid", "DeliveryPending"]
    assert raised.value.problems[0].note.splitlines() == [f"| line {number}" for number in range(10, 30)]
    output = capsys.readouterr()
    assert output.out == "api@1  http://api.me        next: pin logs api\n"
    assert {"db     DocumentInvalid", "late   DeliveryPending", "web@1  CrashLoop"} <= set(output.err.splitlines())


async def test_ignores_older_generation_and_reports_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = SubmissionOutcome(OUTCOMES[0].receipt, summary_of("web", generation=2))
    platform = FakePlatform(
        [newer], WorkloadChange(current=[summary_of("web", done=True)]), WorkloadChange(deleted=["web"])
    )
    connect_to(monkeypatch, platform)
    with pytest.raises(Refused, match="web@2 was deleted while it was followed"):
        await deploy(TARGET, [], None, 60.0, "")


def test_interrupt_leaves_workloads_running(capsys: pytest.CaptureFixture[str]) -> None:
    async def interrupted() -> None:
        platform, task = FakePlatform(OUTCOMES, *CHANGES_TO_READY[:1]), asyncio.current_task()
        assert task is not None
        interrupting = asyncio.create_task(platform.all_sent.wait())
        interrupting.add_done_callback(lambda _: task.cancel())
        await follow_set.follow_set(platform, OUTCOMES, FollowTimer.start(SystemClock(), 60.0))  # type: ignore[arg-type]

    with pytest.raises(SystemExit) as exited:
        asyncio.run(interrupted())
    assert exited.value.code == 130
    assert "all workloads continue in the background        see: pin get" in capsys.readouterr().err


async def test_no_wait_prints_submitted_workloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect_to(monkeypatch, FakePlatform(OUTCOMES))
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
def test_joined_documents_keep_content_and_locate_each_line(files: Sequence[Sequence[str]]) -> None:
    texts = {f"{number}.yaml": "---\n".join(each if each.endswith("\n") else f"{each}\n" for each in file)
             for number, file in enumerate(files)}  # fmt: skip
    originals = [document for name, text in texts.items() for document in read_documents(text, name)]
    joined = JoinedDocuments.join(originals)
    sent = read_documents(joined.text)
    assert [each.content for each in sent] == [each.content for each in originals]
    for original, joined_document in zip(originals, sent, strict=True):
        places = [
            joined.locate(Problem(DOCUMENT_INVALID, "", Where(line=line))) for line in joined_document.lines.values()
        ]
        assert [each.where for each in places] == [Where(original.file, line) for line in original.lines.values()]


def test_folder_several_files_or_several_documents_are_a_set(tmp_path: Path) -> None:
    one, two = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text("a: 1\n")
    two.write_text("b: 1\n---\nc: 1\n")
    assert read_file_set([one]) == []
    assert [list(each.content) for each in read_file_set([two])] == [["b"], ["c"]]
    assert [list(each.content) for each in read_file_set([tmp_path])] == [["a"], ["b"], ["c"]]
    assert len(read_file_set([two, one])) == 3
    two.write_text("a: [")
    # A single invalid file is sent to the desk, which records the refusal.
    assert read_file_set([two]) == []
    with pytest.raises(Refused, match="invalid YAML"):
        read_file_set([tmp_path])
