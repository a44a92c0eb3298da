"""Debian's packages by apt and dpkg, and their complaints as Problems."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DISK_FULL, NETWORK_UNREACHABLE, PACKAGE_MISSING, Reason


class Symptom(NamedTuple):
    """What apt and dpkg say, and what it means."""

    words: tuple[str, ...]
    reason: Reason
    what: str
    next: str


SYMPTOMS = (
    Symptom(
        ("No space left", "enough free space"),
        DISK_FULL,
        "there is no room on the disk for",
        "free some room, then run the same command again",
    ),
    Symptom(
        ("Could not resolve", "Temporary failure", "Could not connect", "Unable to connect", "Failed to fetch"),
        NETWORK_UNREACHABLE,
        "Debian's package servers could not be reached for",
        "check the network and apt's proxy settings, then run the same command again",
    ),
    Symptom(
        ("Unable to locate package", "no installation candidate", "Can't find a source"),
        PACKAGE_MISSING,
        "this machine's apt knows no package",
        "look at the sources in /etc/apt: they should have Debian's `main`",
    ),
)

# apt knows the package, but its servers have a newer one by now.
OUTDATED = "404"


def download(packages: list[str], folder: Path) -> list[Path]:
    """Fetch the packages' files. Root may renew the machine's lists for it, anybody else lists of their own."""
    lists = [] if os.geteuid() == 0 else _own_lists(folder / "apt")
    _apt_get(["download", *packages], packages, folder, lists)
    return sorted(folder.glob("*.deb"))


def install(packages: list[str]) -> None:
    """Install packages for the whole machine, as root."""
    _apt_get(_installing(packages), packages, Path("/"), [])


def require_root(packages: list[str]) -> None:
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"this needs {', '.join(packages)} from Debian, and only root can install packages",
                next=f"sudo apt-get {' '.join(_installing(packages))}",
            )
        )


def unpack(file: Path, target: Path) -> None:
    done = _run(["dpkg", "-x", str(file), str(target)], file.parent)
    if done.returncode != 0:
        raise Refused(_judge([file.name], done.stdout))


def installed_version(package: str) -> str:
    """Empty where it is not installed."""
    if shutil.which("dpkg-query") is None:
        return ""
    query = _run(["dpkg-query", "--show", "--showformat=${Version}", package], Path("/"))
    return query.stdout if query.returncode == 0 else ""


def missing_libraries(program: Path) -> list[str]:
    """What is only unpacked does not pull in what it needs."""
    lines = _run(["ldd", str(program)], program.parent).stdout.splitlines()
    return [line.split()[0] for line in lines if line.endswith("not found")]


def _apt_get(words: list[str], packages: list[str], folder: Path, lists: list[str]) -> None:
    """Where apt cannot find something, its lists may be absent or old: they are renewed, and it is asked again."""
    if shutil.which("apt-get") is None:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"not on this machine: {', '.join(packages)}; and there is no apt-get to bring it",
                note="PinCompute brings its programs from Debian; elsewhere, put them on the PATH yourself",
            )
        )
    done = _run(["apt-get", *words], folder)
    if done.returncode == 0:
        return
    problem = _judge(packages, done.stdout)
    if problem.reason is PACKAGE_MISSING or OUTDATED in problem.note:
        renewed = _run(["apt-get", *lists, "update"], folder)
        done = _run(["apt-get", *lists, *words], folder)
        problem = _judge(packages, f"{renewed.stdout}\n{done.stdout}")
    if done.returncode != 0:
        raise Refused(problem)


def _installing(packages: list[str]) -> list[str]:
    return ["install", "-y", "--no-install-recommends", *packages]


def _own_lists(folder: Path) -> list[str]:
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]


def _judge(packages: list[str], said: str) -> Problem:
    """apt's words as ours, with the lines that say why."""
    complaints = [line for line in said.splitlines() if line.startswith(("E:", "W:", "dpkg"))]
    note = "\n".join(complaints[-3:])
    for symptom in SYMPTOMS:
        if any(words in said for words in symptom.words):
            return Problem(symptom.reason, f"{symptom.what} {', '.join(packages)}", note=note, next=symptom.next)
    return Problem(PACKAGE_MISSING, f"Debian's packages {', '.join(packages)} could not be brought", note=note)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """In English, without questions, with everything that is said in one stream."""
    speech = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, cwd=folder, env=os.environ | speech, text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
