"""Shell completion: run by installed shells, and by kubectl's protocol for plugins."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fake_desk import fake_desk
from pincompute.api.project_view import ProjectSummary
from pincompute.api.workload_detail import ReplicaDetail, RevisionDetail, WorkloadDetail
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.cli.completion import SHELL_SETUP
from pincompute.main import COMMANDS

BIN_FOLDER = Path(sys.executable).parent


PROJECTS = [ProjectSummary(project=each, owner=f"team-{each}") for each in ("search", "ads")]


def summary(project: str, name: str) -> WorkloadSummary:
    return WorkloadSummary(
        kind="PinterestService", project=project, name=name, uid="1", generation=1, revision=1,
        goal="Ready", ready=1, wanted=1, image="web:1",
    )  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one file, and `pin` on the PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{BIN_FOLDER}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "hello.yaml").touch()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[None]:
    """A desk with two workloads in each project. The service web has three replicas and three revisions."""

    def answer(_: str, path: str) -> tuple[int, object]:
        if path.endswith("/workloads/web/account"):
            return 200, DETAIL
        _, _, _, *project = path.split("/")
        return 200, [summary(project[0], each) for each in ("web", "resize")] if project else PROJECTS

    with fake_desk(tmp_path / "state", answer):
        yield


DETAIL = WorkloadDetail(
    summary=msgspec.structs.replace(summary("me", "web"), revision=3),
    resource={},
    replicas=[ReplicaDetail(name=f"web-7c-{each}", state="Running") for each in ("abcde", "fghij")]
    + [ReplicaDetail(name="web-8d-fghij", state="Pending")],
    history=[RevisionDetail(number=each, created_at="", changes=[f"image a -> web:{each}"]) for each in (1, 2, 3)],
)


def complete_in_bash(*words: str) -> list[str]:
    """Return the completions that bash shows for the tab key after these words."""
    typed = " ".join(f"'{each}'" for each in ("pin", *words))
    script = (
        f"{SHELL_SETUP['bash']}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}\n"
        'set -- "$1" "${COMP_WORDS[COMP_CWORD]}"; _pin_completion pin; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def complete_in_kubectl(*words: str) -> list[str]:
    done = subprocess.run([BIN_FOLDER / "kubectl_complete-pin", *words], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.usefixtures("shell")
def test_completes_commands_options_and_choices() -> None:
    assert complete_in_bash("re") == [each for each in COMMANDS if each.startswith("re")]
    assert complete_in_bash("deploy", "--no") == ["--no-wait"]
    assert complete_in_bash("get", "-o", "j") == ["json"]


@pytest.mark.usefixtures("shell", "desk")
def test_completes_names_of_workloads() -> None:
    assert complete_in_bash("why", "") == ["resize", "web"]
    assert complete_in_bash("delete", "web", "r") == ["resize"]
    assert complete_in_bash("logs", "-p", "other", "w") == ["web"]
    assert complete_in_kubectl("scale", "r") == ["resize\tservice", ":4"]


@pytest.mark.usefixtures("shell", "desk")
def test_completes_names_of_projects() -> None:
    assert complete_in_bash("project", "") == ["ads", "search"]
    assert complete_in_kubectl("project", "s") == ["search\tteam-search", ":4"]


@pytest.mark.usefixtures("shell", "desk")
def test_completes_replicas_after_the_slash() -> None:
    assert complete_in_bash("logs", "web/") == ["web/abcde", "web/web-7c-fghij", "web/web-8d-fghij"]
    assert complete_in_kubectl("why", "service/web/a") == ["service/web/abcde\tRunning", ":4"]
    assert complete_in_bash("shell", "w") == ["web"]


@pytest.mark.usefixtures("shell", "desk")
def test_completes_earlier_revisions_newest_first() -> None:
    assert complete_in_bash("rollback", "web", "--to", "") == ["2", "1"]
    assert complete_in_kubectl("rollback", "web", "--to", "2") == ["2\timage a -> web:2", ":4"]
    assert complete_in_bash("rollback", "--to", "") == []


@pytest.mark.usefixtures("shell")
def test_completes_kinds() -> None:
    assert complete_in_bash("get", "--kind", "s") == ["service", "statefulset"]
    assert complete_in_kubectl("get", "-k", "job") == ["jobset\ta job set", ":4"]


@pytest.mark.usefixtures("shell")
def test_completes_nothing_and_prints_no_error_without_platform() -> None:
    assert complete_in_bash("why", "") == []
    assert complete_in_kubectl("why", "") == [":4"]


@pytest.mark.usefixtures("shell")
def test_kubectl_completes_files_where_a_file_is_allowed() -> None:
    assert complete_in_kubectl("deploy", "he") == [":0"]
    assert complete_in_kubectl("sca") == ["scale\tSet the number of replicas, or of parallel tasks.", ":4"]
    assert complete_in_kubectl() == [*(f"{name}\t{help_}" for name, (_, help_) in COMMANDS.items()), ":4"]


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("name", SHELL_SETUP)
def test_setup_is_valid_in_its_shell(name: str) -> None:
    done = subprocess.run([BIN_FOLDER / "pin", "completion", name], capture_output=True, text=True, check=True)
    assert "_PIN_COMPLETE" in done.stdout
    if shutil.which(name):
        subprocess.run([name, "-n"], input=done.stdout, text=True, check=True)
