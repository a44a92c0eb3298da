"""Runs apt and dpkg, and translates their error messages into Problems."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DISK_FULL, NETWORK_UNREACHABLE, PACKAGE_MISSING, Reason


class Symptom(NamedTuple):
    """Messages of apt and dpkg that have one cause, and the Problem that reports it."""

    patterns: tuple[str, ...]
    reason: Reason
    what: str
    next: str


SYMPTOMS = (
    Symptom(
        ("No space left", "enough free space"),
        DISK_FULL,
        "disk full: no space for Debian packages",
        "free disk space, then run the same command again",
    ),
    Symptom(
        ("Could not resolve", "Temporary failure", "Could not connect", "Unable to connect", "Failed to fetch"),
        NETWORK_UNREACHABLE,
        "Debian's package servers are unreachable; not fetched:",
        "check the network and apt's proxy settings, then run the same command again",
    ),
    Symptom(
        ("Unable to locate package", "no installation candidate", "Can't find a source"),
        PACKAGE_MISSING,
        "apt knows no package",
        "add Debian's `main` to the sources in /etc/apt",
    ),
)

# The local lists name a version that the server has replaced since.
OUTDATED = "404"


def download(packages: list[str], folder: Path) -> list[Path]:
    """Fetch the packages' files. Root updates the machine's package lists; other users update lists in `folder`."""
    lists = [] if os.geteuid() == 0 else _own_lists(folder / "apt")
    _apt_get(["download", *packages], packages, folder, lists)
    return sorted(folder.glob("*.deb"))


def install(packages: list[str]) -> None:
    """Install packages for the whole machine, as root."""
    _apt_get(_install_arguments(packages), packages, Path("/"), [])


def require_root(packages: list[str]) -> None:
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"Debian packages are not installed: {', '.join(packages)}; only root can install them",
                next=f"sudo apt-get {' '.join(_install_arguments(packages))}",
            )
        )


def unpack(file: Path, target: Path) -> None:
    done = _run(["dpkg", "-x", str(file), str(target)], file.parent)
    if done.returncode != 0:
        raise Refused(_problem_from_output([file.name], done.stdout))


def installed_version(package: str) -> str:
    """Version of an installed package; empty if it is not installed."""
    if shutil.which("dpkg-query") is None:
        return ""
    query = _run(["dpkg-query", "--show", "--showformat=${Version}", package], Path("/"))
    return query.stdout if query.returncode == 0 else ""


def missing_libraries(program: Path) -> list[str]:
    """Shared libraries that a program needs and this machine lacks: unpacking a package does not fetch dependencies."""
    lines = _run(["ldd", str(program)], program.parent).stdout.splitlines()
    return [line.split()[0] for line in lines if line.endswith("not found")]


def _apt_get(arguments: list[str], packages: list[str], folder: Path, lists: list[str]) -> None:
    """Run apt-get. If it does not find a package, update the lists, which may be absent or outdated, and retry once."""
    if shutil.which("apt-get") is None:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"programs are missing and this machine has no apt-get: {', '.join(packages)}",
                note="PinCompute fetches them on Debian only; on other systems, install them and put them on the PATH",
            )
        )
    done = _run(["apt-get", *arguments], folder)
    if done.returncode == 0:
        return
    problem = _problem_from_output(packages, done.stdout)
    if problem.reason is PACKAGE_MISSING or OUTDATED in problem.note:
        update = _run(["apt-get", *lists, "update"], folder)
        done = _run(["apt-get", *lists, *arguments], folder)
        problem = _problem_from_output(packages, f"{update.stdout}\n{done.stdout}")
    if done.returncode != 0:
        raise Refused(problem)


def _install_arguments(packages: list[str]) -> list[str]:
    return ["install", "-y", "--no-install-recommends", *packages]


def _own_lists(folder: Path) -> list[str]:
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]


def _problem_from_output(packages: list[str], output: str) -> Problem:
    """Map apt's output to a Problem with its last error lines as note."""
    complaints = [line for line in output.splitlines() if line.startswith(("E:", "W:", "dpkg"))]
    note = "\n".join(complaints[-3:])
    for symptom in SYMPTOMS:
        if any(pattern in output for pattern in symptom.patterns):
            return Problem(symptom.reason, f"{symptom.what} {', '.join(packages)}", note=note, next=symptom.next)
    return Problem(PACKAGE_MISSING, f"fetching Debian packages failed: {', '.join(packages)}", note=note)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run non-interactively and in English, as SYMPTOMS has English messages; stderr is merged into stdout."""
    variables = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
