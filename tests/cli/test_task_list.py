"""Job sets whose items are the lines of a list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st

from fake_desk import fake_desk
from pincompute.api.documents import Document, read_document
from pincompute.api.job_set import MAX_TASK_DATA_BYTES, MAX_TASKS
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID, QUOTA_EXCEEDED
from pincompute.cli.task_list import ListedJobSet, TaskList, read_listed_job_set, read_task_list
from pincompute.main import command_group

RESIZE = """\
# Every month
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {name: resize}
spec:
  image: hello:dev
  environment: {LEVEL: "1"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    (tmp_path / "resize.yaml").write_text(RESIZE)
    (tmp_path / "months").write_text("2026-01\n\n  \n2026-02\r\n2026-03")
    return tmp_path


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command_group(), words, input=stdin)


def listed_items(text: str) -> list[str]:
    Path("list").write_text(text)
    return read_task_list(Path("list")).items


def test_each_line_that_is_not_empty_is_an_item() -> None:
    tasks = read_task_list(Path("months"))
    assert tasks == TaskList(Path("months"), ["2026-01", "2026-02", "2026-03"], [1, 4, 5])


def test_items_keep_spaces_and_separators_that_are_no_line_ends() -> None:
    assert listed_items("\ufeff a b \nc\u2028d\x0be\n") == [" a b ", "c\u2028d\x0be"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n \n", 0, "the list has no tasks"),
        ("\na\n" * (MAX_TASKS + 1), 2 * MAX_TASKS + 2, "more than 10,000 tasks"),
        ("a\n" + "b" * 65_537, 2, "the line has 65,537 characters, the maximum is 65,536"),
        (f"{'é' * 30_000}\n" * 8, 8, f"more than {MAX_TASK_DATA_BYTES:,} bytes"),
    ],
)
def test_rejects_lists_that_no_job_set_could_have(text: str, line: int, message: str) -> None:
    with pytest.raises(Refused, match=message) as raised:
        listed_items(text)
    assert raised.value.problems[0].where == Where("list", line)


@given(items=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_submitted_text_keeps_every_character_of_items(items: list[str]) -> None:
    content = {"spec": {"items": items}}
    job_set = ListedJobSet(Document(content, "", {}), TaskList(Path(), items, []))
    assert read_document(job_set.text).content == content


def test_problems_are_located_in_the_file_and_in_the_list() -> None:
    job_set = read_listed_job_set(["resize.yaml"], "months")
    places = {
        "spec.environment.LEVEL": Where("resize.yaml", 7, "spec.environment.LEVEL"),
        "spec.parallelism": Where("resize.yaml", 5, "spec.parallelism"),
        "spec.items.1": Where("months", 4, "spec.items.1"),
        "spec.items": Where("months", 0, "spec.items"),
        "spec.items.99": Where("months", 0, "spec.items.99"),
        "": Where("resize.yaml", 2),
    }
    problems = [Problem(DOCUMENT_INVALID, "", Where("resize.yaml", 1, field)) for field in places]
    quota = Problem(QUOTA_EXCEEDED, "", Where(object="me/resize"))
    located = job_set.locate(Refused(*problems, quota)).problems
    assert [each.where for each in located] == [*places.values(), quota.where]


@pytest.mark.parametrize("lines", ["tasks: 3", "items: ['2026-01', '2026-02', '2026-03']"])
def test_equal_tasks_of_the_file_may_stay(lines: str) -> None:
    Path("resize.yaml").write_text(f"{RESIZE}  {lines}\n")
    content = read_document(read_listed_job_set(["resize.yaml"], "months").text).content
    assert content["spec"]["items"] == ["2026-01", "2026-02", "2026-03"]
    assert "tasks" not in content["spec"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("tasks: 4", "resize.yaml:8 spec.tasks: tasks is 4, but months has 3  [Usage]"),
        ("items: [a]", "resize.yaml:8 spec.items: the file has items, and they are not the 3 of months  [Usage]"),
    ],
)
def test_rejects_other_tasks_of_the_file(lines: str, message: str) -> None:
    Path("resize.yaml").write_text(f"{RESIZE}  {lines}\n")
    result = run("plan", "resize.yaml", "--tasks-from", "months", "--offline")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("deploy", "resize.yaml", "--tasks-from", "none"), "no such file: 'none'"),
        (("deploy", "-", "--tasks-from", "-"), "cannot both be standard input"),
        (("deploy", "resize.yaml", "months", "--tasks-from", "months"), "is for one file, and 2 are given"),
        (("deploy", "web.yaml", "--tasks-from", "months"), "web.yaml:2 kind: --tasks-from is for a PinterestJobSet"),
        (("deploy", "resize", "--version", "1", "--tasks-from", "months"), "not for a published build"),
        (("deploy", "resize", "--image", "a", "--worker", "--tasks-from", "months"), "or a new service"),
        (("plan", "resize", "--version", "1", "--tasks-from", "months"), "not for a published build"),
    ],
)
@pytest.mark.usefixtures("refusing_desk")
def test_rejects_other_uses(words: tuple[str, ...], message: str) -> None:
    Path("web.yaml").write_text("apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: web}\n")
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.fixture
def refusing_desk(folder: Path) -> Iterator[None]:
    """A desk that refuses the image, and the second item."""
    errors = [
        Problem(DOCUMENT_INVALID, "no such image", Where(line=40, field="spec.image")),
        Problem(DOCUMENT_INVALID, "no such month", Where(line=50, field="spec.items.1")),
    ]
    with fake_desk(folder / "state", lambda *_: (422, {"errors": [each.json() for each in errors]})):
        yield


@pytest.mark.usefixtures("refusing_desk")
def test_refusals_of_the_desk_name_the_file_and_the_list() -> None:
    result = run("deploy", "resize.yaml", "--tasks-from", "months")
    assert result.exit_code == 1
    assert "resize.yaml:6 spec.image: no such image" in result.stderr
    assert "months:4 spec.items.1: no such month" in result.stderr


def test_plan_has_the_items_of_standard_input() -> None:
    result = run("plan", "resize.yaml", "--tasks-from", "-", "--offline", "-o", "yaml", stdin="one\ntwo\n")
    assert result.exit_code == 0, result.stderr
    assert "0.item: one\n  1.item: two\n" in result.stdout
