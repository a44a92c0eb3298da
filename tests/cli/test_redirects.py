"""Words, options and references as users of kubectl and other tools type them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fake_desk import fake_desk
from pincompute.api.project_view import ProjectSummary
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CRASH_LOOP, TIMED_OUT, USAGE
from pincompute.cli.exit_codes import exit_code
from pincompute.cli.redirects import OTHER_ARGUMENTS, SAME_ARGUMENTS, UNSAFE_SUGGESTIONS
from pincompute.cli.workload_ref import WorkloadRef, join_kind_and_name, parse_replica_ref
from pincompute.main import COMMANDS, command_group

SERVICE = "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: web}\nspec: {image: a, port: 80}\n"


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command_group(), words, input=stdin)


@pytest.mark.parametrize(
    ("words", "next_"),
    [
        ("describe web", "pin show web"),
        ("exec web -- ls -l", "pin shell web -- ls -l"),
        ("rm web", "pin delete web"),
        ("apply -f web.yaml", "pin deploy FILE"),
        ("describ web", "pin show web"),
        ("depoly web.yaml", "pin deploy web.yaml"),
        ("xyzzy", "pin --help"),
    ],
)
def test_suggests_command_for_guessed_word(words: str, next_: str) -> None:
    result = run(*words.split())
    assert result.exit_code == 2
    assert result.stderr == f"no command '{words.split()[0]}'  [Usage]\n  next: {next_}\n"


def test_redirects_lead_to_commands_that_exist_and_shadow_none() -> None:
    assert set(SAME_ARGUMENTS.values()) <= set(COMMANDS)
    guessed = {*SAME_ARGUMENTS, *OTHER_ARGUMENTS}
    assert not guessed & set(COMMANDS)
    for text in OTHER_ARGUMENTS.values():
        assert text.partition("pin ")[2].split()[0] in COMMANDS, text


@pytest.mark.parametrize(("command", "option"), [("deploy", "--yess"), ("deploy", "--ye"), ("down", "--purg")])
def test_misspelt_option_never_leads_to_an_unsafe_one(command: str, option: str) -> None:
    result = run(command, "x", option)
    assert result.exit_code == 2
    assert not any(f"'{each}'" in result.stderr for each in UNSAFE_SUGGESTIONS), result.stderr
    assert "No such option" in result.stderr


def test_version_is_a_command_too() -> None:
    assert run("version").stdout == run("--version").stdout != ""


@pytest.mark.parametrize(
    ("typed", "ref", "replica"),
    [
        ("web", WorkloadRef("web"), ""),
        ("web/abcde", WorkloadRef("web"), "abcde"),
        ("service/web", WorkloadRef("web", "PinterestService"), ""),
        ("service/web/abcde", WorkloadRef("web", "PinterestService"), "abcde"),
        ("resize/12", WorkloadRef("resize"), "12"),
    ],
)
def test_parses_reference_to_replica(typed: str, ref: WorkloadRef, replica: str) -> None:
    assert parse_replica_ref(typed) == (ref, replica)


@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        (["service", "web"], ["service/web"]),
        (["services", "web", "-o", "json"], ["services/web", "-o", "json"]),
        (["web", "3"], ["web", "3"]),
        (["service", "3"], ["service", "3"]),
        (["web", "shop"], ["web", "shop"]),
        (["service", "--", "ls"], ["service", "--", "ls"]),
        (["service/web", "shop"], ["service/web", "shop"]),
        (["web"], ["web"]),
    ],
)
def test_joins_kind_and_name(typed: list[str], joined: list[str]) -> None:
    assert join_kind_and_name(typed) == joined


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(Problem(USAGE, "a")), 2),
        (Refused(Problem(TIMED_OUT, "a")), 124),
        (Refused(Problem(CRASH_LOOP, "a")), 1),
        (Refused(Problem(USAGE, "a"), Problem(CRASH_LOOP, "b")), 1),
        (ValueError("a"), 1),
    ],
)
def test_exit_code_tells_usage_and_time_out_from_failure(error: Exception, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("words", [("plan", "--offline", "-f", "-"), ("plan", "--offline", "-")])
def test_reads_document_from_stdin(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pincompute", *words]
    done = subprocess.run(command, input=SERVICE, capture_output=True, text=True, check=True)
    assert "Deployment/web" in done.stdout


def test_without_files_is_wrong_usage() -> None:
    for command in ("plan", "deploy"):
        result = run(command)
        assert (result.exit_code, "Missing argument" in result.stderr) == (2, True)


def test_refuses_folder_with_too_many_files(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / f"{number}.yaml").touch()
    result = run("plan", "--offline", str(tmp_path))
    assert result.exit_code == 2
    assert "more than 1,000 YAML files" in result.stderr


def test_native_of_kubernetes_is_named_with_the_way_in(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(SERVICE.replace("pinterest.com/v1", "apps/v1").replace("PinterestService", "Deployment"))
    result = run("plan", "--offline", str(file))
    assert f"{file}:2 kind: this is a Deployment of apps/v1, not a workload of pinterest.com/v1" in result.stderr
    assert result.stderr.endswith("next: pin import -f FILE\n")


def test_lists_all_projects_that_the_caller_may_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    asked: list[str] = []

    def respond(_: str, path: str) -> tuple[int, object]:
        asked.append(path)
        if path == "/v1/projects":
            return 200, [ProjectSummary(project="shop"), ProjectSummary(project="ads")]
        return 200, [listed_workload(f"web-of-{path.split('/')[3]}", project=path.split("/")[3])]

    with fake_desk(tmp_path / "state", respond):
        listed, named = run("get", "-A"), run("get", "-A", "web")
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [
        ["PROJECT", "NAME"], ["ads", "web-of-ads@1"], ["shop", "web-of-shop@1"],
    ]  # fmt: skip
    assert asked == ["/v1/projects", "/v1/projects/ads/workloads", "/v1/projects/shop/workloads"]
    assert (named.exit_code, "cannot be combined with names" in named.stderr) == (2, True)


def listed_workload(name: str, project: str) -> WorkloadSummary:
    return WorkloadSummary(
        kind="PinterestService", project=project, name=name, uid="1", generation=1, revision=1, goal="Ready", ready=1,
        wanted=1, image="a",
    )  # fmt: skip
