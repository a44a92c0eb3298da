"""`pin edit`: an editor opens the workload's document, and the result is deployed, or kept if it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.documents import read_document
from pincompute.api.service import PinterestService
from pincompute.api.validation import parse_workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import QUOTA_EXCEEDED
from pincompute.main import command_group
from workloads import HELLO

REFUSED = {"errors": [Problem(QUOTA_EXCEEDED, "the quota is used up").json()]}


class EditedWorkload:
    """A workload of a desk that refuses submissions, and the requests for it."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.changes_meanwhile = False
        self.stored = msgspec.to_builtins(parse_workload(read_document(HELLO), "me"))

    def answer_request(self, method: str, path: str) -> tuple[int, object]:
        self.requests.append(f"{method} {path.rpartition('/')[2]}")
        if method == "POST":
            return 422, REFUSED
        generation = len(self.requests) if self.changes_meanwhile else 1
        metadata = {**self.stored["metadata"], "uid": "1", "generation": generation}
        return 200, {**self.stored, "kind": PinterestService.__name__, "metadata": metadata}


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EditedWorkload]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("VISUAL", raising=False)
    workload = EditedWorkload()
    with fake_desk(tmp_path / "state", workload.answer_request):
        yield workload


def run_edit(monkeypatch: pytest.MonkeyPatch, editor: str) -> Result:
    monkeypatch.setenv("EDITOR", editor)
    return CliRunner().invoke(command_group(), ["edit", "hello"])


def test_unchanged_document_is_not_submitted(edited: EditedWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_edit(monkeypatch, "true")
    assert (result.exit_code, result.stderr) == (0, "hello  unchanged\n")
    assert edited.requests == ["GET hello"]


def test_refused_edit_is_kept_in_a_file(edited: EditedWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_edit(monkeypatch, "sed -i s/8080/8081/")
    assert result.exit_code == 1
    assert "the quota is used up  [QuotaExceeded]" in result.stderr
    assert "your edit is kept in hello.edited.yaml" in result.stderr
    assert "port: 8081" in Path("hello.edited.yaml").read_text()
    assert edited.requests == ["GET hello", "GET hello", "POST submissions"]


def test_later_change_of_another_user_is_not_overwritten(
    edited: EditedWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited.changes_meanwhile = True
    result = run_edit(monkeypatch, "sed -i s/8080/8081/")
    assert result.exit_code == 1
    assert "hello was changed while it was edited  [Conflict]" in result.stderr
    assert edited.requests == ["GET hello", "GET hello"]


def test_editor_that_fails_changes_nothing(edited: EditedWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_edit(monkeypatch, "false")
    assert result.exit_code == 2
    assert "next: set EDITOR to your editor" in result.stderr
    assert edited.requests == ["GET hello"]
