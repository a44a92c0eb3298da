"""What a shell is offered: by the shells themselves, where this machine has them, and by kubectl's own rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pincompute.api.summary import Summary
from pincompute.api.tenancy import Tenant
from pincompute.cli.completion import SHELLS
from pincompute.main import COMMANDS
from pretended_desk import desk_that_says

PIN = Path(sys.executable).parent


TENANTS = [Tenant(project=each, owner=f"team-{each}") for each in ("search", "ads")]


def summary(project: str, name: str) -> Summary:
    return Summary(
        kind="PinterestService", project=project, name=name, uid="1", generation=1, revision=1,
        goal="Ready", ready=1, wanted=1, image="web:1",
    )  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one file, and `pin` where shells look for programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{PIN}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "hello.yaml").touch()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[None]:
    """One that knows two workloads."""

    def answer(_: str, path: str) -> tuple[int, object]:
        _, _, _, *project = path.split("/")
        return 200, [summary(project[0], each) for each in ("web", "resize")] if project else TENANTS

    with desk_that_says(tmp_path / "state", answer):
        yield


def bash(*words: str) -> list[str]:
    """What bash offers when the tabulator is pressed after these."""
    typed = " ".join(f"'{each}'" for each in ("pin", *words))
    script = (
        f"{SHELLS['bash']}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}\n"
        'set -- "$1" "${COMP_WORDS[COMP_CWORD]}"; _pin_completion pin; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def kubectl(*words: str) -> list[str]:
    done = subprocess.run([PIN / "kubectl_complete-pin", *words], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.usefixtures("shell")
def test_commands_options_and_choices() -> None:
    assert bash("re") == [each for each in COMMANDS if each.startswith("re")]
    assert bash("deploy", "--no") == ["--no-wait"]
    assert bash("get", "-o", "j") == ["json"]


@pytest.mark.usefixtures("shell", "desk")
def test_names_of_workloads() -> None:
    assert bash("why", "") == ["resize", "web"]
    assert bash("delete", "web", "r") == ["resize"]
    assert bash("logs", "-p", "other", "w") == ["web"]
    assert kubectl("scale", "r") == ["resize\tservice", ":4"]


@pytest.mark.usefixtures("shell", "desk")
def test_names_of_projects() -> None:
    assert bash("project", "") == ["ads", "search"]
    assert kubectl("project", "s") == ["search\tteam-search", ":4"]


@pytest.mark.usefixtures("shell")
def test_without_a_platform_there_are_no_names_and_no_words_in_the_line_that_is_typed() -> None:
    assert bash("why", "") == []
    assert kubectl("why", "") == [":4"]


@pytest.mark.usefixtures("shell")
def test_kubectl_is_told_when_a_file_is_another_way_to_say_it() -> None:
    assert kubectl("deploy", "he") == [":0"]
    assert kubectl("sca") == ["scale\tRun so many copies, or so many tasks side by side.", ":4"]
    assert kubectl() == [*(f"{name}\t{about}" for name, (_, about) in COMMANDS.items()), ":4"]


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("name", SHELLS)
def test_what_is_printed_is_what_the_shell_reads(name: str) -> None:
    done = subprocess.run([PIN / "pin", "completion", name], capture_output=True, text=True, check=True)
    assert "_PIN_COMPLETE" in done.stdout
    if shutil.which(name):
        subprocess.run([name, "-n"], input=done.stdout, text=True, check=True)
