"""`pin edit`: an editor opens the workload's document, and the result is deployed, or kept if it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def run_set(*options: str) -> Result:
    return CliRunner().invoke(command_group(), ["edit", "hello", "--no-wait", *options])


@pytest.fixture
def deployed(edited: EditedWorkload, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Specs of the documents that are deployed, in the place of their deployment."""
    assert not edited.requests
    specs: list[Any] = []

    async def record_spec(_: object, __: object, text: str, ___: object) -> None:
        specs.append(read_document(text).content["spec"])

    monkeypatch.setattr("pincompute.cli.edit._deploy", record_spec)
    return specs


def test_set_and_remove_need_no_editor(deployed: list[Any]) -> None:
    result = run_set("--set", "port=8081", "--set", 'environment[A]="1"', "--set", "template.spec.hostAliases=[]")
    assert result.exit_code == 0, result.output
    assert (deployed[0]["port"], deployed[0]["environment"]) == (8081, {"A": "1"})
    assert deployed[0]["template"] == {"spec": {"hostAliases": []}}
    assert run_set("--remove", "port").exit_code == 0
    assert "port" not in deployed[1]


def test_equal_value_is_not_submitted(edited: EditedWorkload) -> None:
    result = run_set("--set", "port=8080")
    assert (result.exit_code, result.stderr) == (0, "hello  unchanged\n")
    assert edited.requests == ["GET hello"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "port"), "a setting must be FIELD=VALUE"),
        (("--set", "a..b=1"), "'a..b' is no path of a field"),
        (("--set", "port.x=1"), "x cannot be a field of 8080"),
        (("--remove", "gpus"), "there is no gpus"),
    ],
)
def test_setting_that_leads_nowhere_is_refused(edited: EditedWorkload, options: tuple[str, str], message: str) -> None:
    result = run_set(*options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert edited.requests == ["GET hello"]


def test_value_that_is_no_yaml_is_refused(edited: EditedWorkload) -> None:
    result = run_set("--set", "environment={A: ")
    assert result.exit_code == 1
    assert "[DocumentInvalid]" in result.stderr
    assert edited.requests == ["GET hello"]


def test_refused_setting_keeps_no_file(edited: EditedWorkload) -> None:
    result = run_set("--set", "port=8081")
    assert result.exit_code == 1
    assert "the quota is used up  [QuotaExceeded]" in result.stderr
    assert edited.requests == ["GET hello", "GET hello", "POST submissions"]
    assert not Path("hello.edited.yaml").exists()
