"""Programs from Debian packages are unpacked without root, and apt's errors become Problems."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.base.reasons import DISK_FULL, NETWORK_UNREACHABLE, PACKAGE_MISSING, Reason
from pincompute.engine import debian


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of a fake `apt-get`, written by `behave`, that records its arguments."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    return program


def behave(program: Path, script: str) -> None:
    calls = program.with_name("calls")
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
    program.chmod(0o755)


def recorded_calls(program: Path) -> list[str]:
    return program.with_name("calls").read_text().splitlines()


def build_package(folder: Path) -> Path:
    """A Debian package with a two-line docker-registry."""
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


def test_daemon_is_unpacked_once_and_not_started(apt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    behave(apt, f"cp {build_package(tmp_path / 'package')} .")
    debian.unpack_packages(["docker-registry"])
    debian.unpack_packages(["docker-registry"])
    folder = tmp_path / "cache/debian"
    assert (folder / "docker-registry_2.8/usr/bin/docker-registry").is_file()
    assert sorted(each.name for each in folder.iterdir()) == ["docker-registry_2.8", "lock"]
    assert recorded_calls(apt) == ["download docker-registry"]
    assert capsys.readouterr().err == "downloading Debian packages: docker-registry\n"


def test_updates_lists_and_retries_unknown_package(apt: Path, tmp_path: Path):
    behave(
        apt,
        f"""
        case "$*" in
            *update) touch renewed ;;
            *) test -e renewed || {{ echo "E: Unable to locate package"; exit 100; }}
               cp {build_package(tmp_path / "package")} . ;;
        esac""",
    )
    debian.unpack_packages(["docker-registry"])
    assert [call.split()[-1] for call in recorded_calls(apt)] == ["docker-registry", "update", "docker-registry"]


@pytest.mark.parametrize(
    ("output", "reason", "message"),
    [
        ("E: Unable to locate package nginx", PACKAGE_MISSING, "knows no package nginx"),
        ("W: Temporary failure resolving 'mirror'", NETWORK_UNREACHABLE, "unreachable; not fetched: nginx"),
        ("E: Failed to fetch nginx.deb  404  Not Found", NETWORK_UNREACHABLE, "unreachable; not fetched: nginx"),
        (
            "E: Write error - write (28: No space left on device)",
            DISK_FULL,
            "disk full: no space for Debian packages nginx",
        ),
        ("E: dpkg was interrupted", PACKAGE_MISSING, "fetching Debian packages failed: nginx"),
    ],
)
def test_apt_errors_become_problems(apt: Path, tmp_path: Path, output: str, reason: Reason, message: str):
    behave(apt, f'echo "{output}"; exit 100')
    with pytest.raises(Refused) as refused:
        debian.unpack_packages(["nginx"])
    (problem,) = refused.value.problems
    assert problem.reason is reason
    assert message in problem.what
    assert output in problem.note
    assert [each.name for each in (tmp_path / "cache/debian").iterdir() if each.name.startswith(".new")] == []


def test_truncated_package_leaves_no_files(apt: Path, tmp_path: Path):
    behave(apt, "echo half > nginx_1_all.deb")
    with pytest.raises(Refused, match="nginx"):
        debian.unpack_packages(["nginx"])
    assert [each.name for each in (tmp_path / "cache/debian").iterdir()] == ["lock"]


def test_reports_missing_apt_get(apt: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(apt.parent))
    with pytest.raises(Refused, match="has no apt-get"):
        debian.unpack_packages(["nginx"])


def test_root_installs_packages_and_others_get_the_command(apt: Path, monkeypatch: pytest.MonkeyPatch):
    behave(apt, "true")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    debian.install_packages(["runc"])
    assert recorded_calls(apt) == ["install -y --no-install-recommends runc"]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Refused, match="only root") as refused:
        debian.install_packages(["runc"])
    assert refused.value.problems[0].next == "sudo apt-get install -y --no-install-recommends runc"


def test_unprivileged_user_updates_private_package_lists(apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    behave(apt, "exit 100")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Refused):
        debian.unpack_packages(["nginx"])
    assert recorded_calls(apt)[1].startswith(f"-o Dir::State::lists={tmp_path}/cache/debian/.new-")


def test_installed_program_precedes_unpacked_one(apt: Path, tmp_path: Path):
    behave(apt, f"cp {build_package(tmp_path / 'package')} .")
    debian.ensure_programs("docker-registry")
    own = apt.with_name("docker-registry")
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert debian.find_program("docker-registry") == own
    assert debian.missing_packages(["docker-registry"]) == []
