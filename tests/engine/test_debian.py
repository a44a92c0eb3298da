"""Programs from Debian's packages: unpacked without root, and apt's complaints in our words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.base.reasons import DISK_FULL, NETWORK_UNREACHABLE, PACKAGE_MISSING, Reason
from pincompute.engine import debian


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `apt-get` that does what a test writes into it, and says what it was asked for."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    return program


def behave(program: Path, script: str) -> None:
    asked = program.with_name("asked")
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n{script}\n')
    program.chmod(0o755)


def asked(program: Path) -> list[str]:
    return program.with_name("asked").read_text().splitlines()


def package(folder: Path) -> Path:
    """A package with a registry of two lines."""
    (folder / "DEBIAN").mkdir(parents=True)
    (folder / "DEBIAN/control").write_text(
        "Package: docker-registry\nVersion: 2.8\nArchitecture: all\nMaintainer: t <t@example>\nDescription: t\n"
    )
    program = folder / "usr/bin/docker-registry"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    file = folder.with_name("docker-registry_2.8_all.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder, file], check=True, capture_output=True)
    return file


def test_a_daemon_is_unpacked_once_and_not_started(apt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    behave(apt, f"cp {package(tmp_path / 'package')} .")
    debian.fetch(["docker-registry"])
    debian.fetch(["docker-registry"])
    folder = tmp_path / "cache/debian"
    assert (folder / "docker-registry_2.8/usr/bin/docker-registry").is_file()
    assert sorted(each.name for each in folder.iterdir()) == ["docker-registry_2.8", "lock"]
    assert asked(apt) == ["download docker-registry"]
    assert capsys.readouterr().err == "fetching docker-registry from Debian\n"


def test_what_lists_do_not_know_yet_is_asked_for_again_with_new_ones(apt: Path, tmp_path: Path):
    behave(
        apt,
        f"""
        case "$*" in
            *update) touch renewed ;;
            *) test -e renewed || {{ echo "E: Unable to locate package"; exit 100; }}
               cp {package(tmp_path / "package")} . ;;
        esac""",
    )
    debian.fetch(["docker-registry"])
    assert [words.split()[-1] for words in asked(apt)] == ["docker-registry", "update", "docker-registry"]


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("E: Unable to locate package nginx", PACKAGE_MISSING, "knows no package nginx"),
        ("W: Temporary failure resolving 'mirror'", NETWORK_UNREACHABLE, "could not be reached for nginx"),
        ("E: Failed to fetch nginx.deb  404  Not Found", NETWORK_UNREACHABLE, "could not be reached for nginx"),
        ("E: Write error - write (28: No space left on device)", DISK_FULL, "no room on the disk for nginx"),
        ("E: dpkg was interrupted", PACKAGE_MISSING, "nginx could not be brought"),
    ],
)
def test_complaints_of_apt_are_told_in_our_words(apt: Path, tmp_path: Path, said: str, reason: Reason, words: str):
    behave(apt, f'echo "{said}"; exit 100')
    with pytest.raises(Refused) as refused:
        debian.fetch(["nginx"])
    (problem,) = refused.value.problems
    assert problem.reason is reason
    assert words in problem.what
    assert said in problem.note
    assert [each.name for each in (tmp_path / "cache/debian").iterdir() if each.name.startswith(".new")] == []


def test_a_half_downloaded_package_leaves_nothing(apt: Path, tmp_path: Path):
    behave(apt, "echo half > nginx_1_all.deb")
    with pytest.raises(Refused, match="nginx"):
        debian.fetch(["nginx"])
    assert [each.name for each in (tmp_path / "cache/debian").iterdir()] == ["lock"]


def test_without_apt_it_is_said_what_to_do(apt: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(apt.parent))
    with pytest.raises(Refused, match="there is no apt-get"):
        debian.fetch(["nginx"])


def test_what_needs_installing_is_installed_by_root_and_asked_for_by_others(apt: Path, monkeypatch: pytest.MonkeyPatch):
    behave(apt, "true")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    debian.install(["runc"])
    assert asked(apt) == ["install -y --no-install-recommends runc"]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Refused, match="only root") as refused:
        debian.install(["runc"])
    assert refused.value.problems[0].next == "sudo apt-get install -y --no-install-recommends runc"


def test_anybody_but_root_renews_lists_of_their_own(apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    behave(apt, "exit 100")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Refused):
        debian.fetch(["nginx"])
    assert asked(apt)[1].startswith(f"-o Dir::State::lists={tmp_path}/cache/debian/.new-")


def test_the_machines_own_program_comes_before_an_unpacked_one(apt: Path, tmp_path: Path):
    behave(apt, f"cp {package(tmp_path / 'package')} .")
    debian.bring("docker-registry")
    own = apt.with_name("docker-registry")
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert debian.program("docker-registry") == own
    assert debian.missing(["docker-registry"]) == []
