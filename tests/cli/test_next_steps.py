"""`pin` without words names the next command in every situation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.membership import ProjectRole
from pincompute.api.project_view import ProjectSummary
from pincompute.base.platform_context import Context, write_context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import AVAILABLE, CREDENTIALS_MISSING, FORBIDDEN, IMAGE_PULL_FAILED, PROJECT_UNKNOWN
from pincompute.base.reasons.reason import Reason
from pincompute.main import command_group


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PIN_PROJECT", "shop")
    return tmp_path / "state"


def run_without_words() -> Result:
    return CliRunner().invoke(command_group(), [])


def summary_fields(name: str, **fields: object) -> dict[str, object]:
    texts = dict.fromkeys(("kind", "project", "uid", "image"), "")
    return {**texts, "name": name, "generation": 1, "revision": 2, "goal": "Ready", "ready": 0, "wanted": 2, **fields}


def run_with_desk(state: Path, workloads: object, projects: Sequence[object] = ()) -> tuple[Result, list[str]]:
    asked: list[str] = []

    def respond_to_path(_: str, path: str) -> tuple[int, object]:
        asked.append(path)
        if path == "/v1/projects":
            return 200, projects
        return (200, workloads) if isinstance(workloads, list) else (404, workloads)

    with fake_desk(state, respond_to_path):
        return run_without_words(), asked


def refused_body(reason: Reason) -> dict[str, object]:
    return Refused(Problem(reason, "no such project")).json()


def test_without_platform_names_both_ways_in(state: Path) -> None:
    result = run_without_words()
    assert result.exit_code == 0
    assert result.output == (
        "There is no platform on this machine, and no login.\n"
        "next: pin up, or pin login https://DESK\n"
        "all commands: pin --help\n"
    )
    assert not state.exists()


def test_stopped_platform_is_to_be_started(state: Path) -> None:
    write_context(state, Context(name="main", desk="http://127.0.0.1:9", token="", kubeconfig="/nowhere"))
    result = run_without_words()
    assert result.exit_code == 1
    assert "platform 'main' of this machine is not running" in result.stderr
    assert "next: pin up\n" in result.stderr


def test_remote_desk_that_does_not_answer_is_no_stopped_platform(state: Path) -> None:
    write_context(state, Context(name="main", desk="http://127.0.0.1:9", token="", kubeconfig=""))
    assert "next: pin status\n" in run_without_words().stderr


def test_platform_of_another_name_is_named(state: Path) -> None:
    write_context(state, Context(name="far", desk="http://127.0.0.1:9", token="", kubeconfig=""))
    result = run_without_words()
    assert "no platform 'main' on this machine" in result.stderr
    assert "platforms: far" in result.stderr


def test_problems_come_first_with_one_request(state: Path) -> None:
    failed = {"failed": True, "reason": IMAGE_PULL_FAILED.code, "message": "\x1b[2J"}
    workloads = [
        summary_fields("api", done=True, reason=AVAILABLE.code),
        summary_fields("web", **failed),
        summary_fields("batch"),
        *(summary_fields(f"x{number}", **failed) for number in range(6)),
    ]
    result, asked = run_with_desk(state, workloads)
    assert result.stdout == (
        "Project shop on platform main: 7 with a problem, 1 in progress, 1 ready or done\n"
        "  web@2  0/2  ImagePullFailed\n"
        "  x0@2   0/2  ImagePullFailed\n"
        "  x1@2   0/2  ImagePullFailed\n"
        "  x2@2   0/2  ImagePullFailed\n"
        "  x3@2   0/2  ImagePullFailed\n"
        "  and 2 more        next: pin get --wrong\n"
        "next: pin why web\n"
        "all commands: pin --help\n"
    )
    assert asked == ["/v1/projects/shop/workloads"]


def test_healthy_project_shows_what_else_there_is(state: Path) -> None:
    result, _ = run_with_desk(state, [summary_fields("api", done=True, reason=AVAILABLE.code)])
    assert result.stdout.splitlines()[:2] == [
        "Project shop on platform main: 1 ready or done",
        "next: pin get, or pin deploy NAME --image IMAGE --port 8080",
    ]


def test_empty_project_is_to_be_deployed_to(state: Path) -> None:
    result, _ = run_with_desk(state, [])
    assert "next: pin deploy NAME --image IMAGE --port 8080" in result.stdout


@pytest.mark.parametrize("reason", [PROJECT_UNKNOWN, FORBIDDEN], ids=lambda reason: reason.code)
def test_project_of_others_is_replaced_by_an_own_one(state: Path, reason: Reason) -> None:
    projects = [ProjectSummary(project=each, role=ProjectRole.VIEWER) for each in ("zoo", "ads")]
    result, asked = run_with_desk(state, refused_body(reason), [*projects, ProjectSummary(project="all")])
    assert "Yours: ads, zoo\nnext: export PIN_PROJECT=ads\n" in result.stdout
    assert len(asked) == 2


def test_user_without_projects_is_told_how_to_get_one(state: Path) -> None:
    result, _ = run_with_desk(state, refused_body(PROJECT_UNKNOWN))
    assert "next: pin project create NAME, or ask a project's owner to add you" in result.stdout


def test_other_refusals_are_errors(state: Path) -> None:
    result, asked = run_with_desk(state, refused_body(CREDENTIALS_MISSING))
    assert result.exit_code == 1
    assert CREDENTIALS_MISSING.code in result.stderr
    assert len(asked) == 1
