"""Programs that come from Debian's packages: found on this machine, unpacked into our cache, or installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NamedTuple

import click

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DISK_FULL, NETWORK_UNREACHABLE, PACKAGE_MISSING, Reason
from pincompute.base.settings import setting


class Package(NamedTuple):
    name: str
    programs: tuple[str, ...]
    daemon: bool = False
    """Installing it would start a daemon, so it is only unpacked; that needs no root either."""


PACKAGES = (
    Package("containerd", ("containerd", "containerd-shim-runc-v2", "ctr"), daemon=True),
    Package("docker-registry", ("docker-registry",), daemon=True),
    Package("nginx", ("nginx",), daemon=True),
    Package("runc", ("runc",)),
    # Its `bridge` is left out: iproute2 has a program of that name too.
    Package("containernetworking-plugins", ("host-local", "loopback", "portmap")),
    Package("iptables", ("iptables",)),
    Package("conntrack", ("conntrack",)),
    Package("ethtool", ("ethtool",)),
    Package("socat", ("socat",)),
    Package("iproute2", ("ip",)),
    Package("buildah", ("buildah",)),
    Package("mmdebstrap", ("mmdebstrap",)),
    Package("skopeo", ("skopeo",)),
)

# Where Debian puts programs. An ordinary user's PATH lacks some of these folders.
FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/cni")


def bring(*programs: str) -> None:
    """Make these programs be there: unpack what can be unpacked, install the rest."""
    lacking = [package for package in PACKAGES if package.name in missing(programs)]
    fetch([package.name for package in lacking if package.daemon])
    install([package.name for package in lacking if not package.daemon])


def missing(programs: Iterable[str]) -> list[str]:
    """The packages that would bring those of the programs that are not there."""
    absent = {program_name for program_name in programs if program(program_name) is None}
    return [package.name for package in PACKAGES if absent & set(package.programs)]


def program(name: str) -> Path | None:
    """Where a program is: the machine's own before an unpacked one; None when it is nowhere."""
    places = [*os.get_exec_path(), *(f"/{folder}" for folder in FOLDERS)]
    owner = next(package.name for package in PACKAGES if name in package.programs)
    for unpacked in sorted(_folder().glob(f"{owner}_*"), reverse=True):
        places += [str(unpacked / folder) for folder in FOLDERS]
    found = shutil.which(name, path=os.pathsep.join(places))
    return Path(found) if found else None


def fetch(packages: Iterable[str]) -> None:
    """Unpack packages beside each other in our cache. Nothing of them is started and no root is needed."""
    with _locked():
        wanted = [name for name in packages if not any(_folder().glob(f"{name}_*"))]
        if not wanted:
            return
        click.echo(f"fetching {', '.join(wanted)} from Debian", err=True)
        with tempfile.TemporaryDirectory(dir=_folder(), prefix=".new-") as folder:
            _apt_get(["download", *wanted], wanted, Path(folder))
            for file in sorted(Path(folder).glob("*.deb")):
                _unpack(file)


def install(packages: Iterable[str]) -> None:
    """Install packages for the whole machine, as root."""
    wanted = list(packages)
    if not wanted:
        return
    command = f"apt-get install -y --no-install-recommends {' '.join(wanted)}"
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"this needs {', '.join(wanted)} from Debian, and only root can install packages",
                next=f"sudo {command}",
            )
        )
    with _locked():
        click.echo(f"installing {', '.join(wanted)} from Debian", err=True)
        _apt_get(command.split()[1:], wanted, _folder())


def _unpack(file: Path) -> None:
    """An interrupted unpacking leaves only a folder that nobody looks at."""
    name, version, _ = file.name.split("_")
    fresh = file.with_suffix("")
    done = _run(["dpkg", "-x", str(file), str(fresh)], file.parent)
    if done.returncode != 0:
        raise Refused(_judge([name], done.stdout))
    _check_libraries(name, fresh)
    fresh.rename(_folder() / f"{name}_{version}")


def _check_libraries(package: str, root: Path) -> None:
    """What is only unpacked does not pull in what it needs. A Debian with Python has all of it."""
    programs = next(each.programs for each in PACKAGES if each.name == package)
    for file in (root / folder / name for folder in FOLDERS for name in programs):
        if not file.exists():
            continue
        lines = _run(["ldd", str(file)], root).stdout.splitlines()
        absent = [line.split()[0] for line in lines if line.endswith("not found")]
        if absent:
            raise Refused(
                Problem(
                    PACKAGE_MISSING,
                    f"{file.name} from Debian's {package} needs {', '.join(absent)}, not on this machine",
                    next=f"install the library packages that `apt-cache depends {package}` lists",
                )
            )


def _apt_get(arguments: list[str], packages: list[str], folder: Path) -> None:
    """Run apt-get; where it cannot find something, its lists may be absent or old: renew them and try again."""
    if shutil.which("apt-get") is None:
        raise Refused(
            Problem(
                PACKAGE_MISSING,
                f"{', '.join(packages)} is not on this machine, and there is no apt-get to fetch it",
                note="PinCompute brings its programs from Debian; elsewhere, put them on the PATH yourself",
            )
        )
    done = _run(["apt-get", *arguments], folder)
    if done.returncode == 0:
        return
    lists = _own_lists()
    renewed = _run(["apt-get", *lists, "update"], folder)
    done = _run(["apt-get", *lists, *arguments], folder)
    if done.returncode != 0:
        raise Refused(_judge(packages, f"{renewed.stdout}\n{done.stdout}"))


def _own_lists() -> list[str]:
    """Root renews the machine's own lists; anybody else keeps private ones."""
    if os.geteuid() == 0:
        return []
    private = _folder() / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (private / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::lists={private}/lists", "-o", f"Dir::Cache={private}/cache"]


SYMPTOMS: tuple[tuple[Reason, str, tuple[str, ...], str], ...] = (
    (DISK_FULL, "there is no room to fetch", ("No space left", "enough free space"), ""),
    (
        NETWORK_UNREACHABLE,
        "Debian's package servers could not be reached for",
        ("Could not resolve", "Temporary failure", "Could not connect", "Unable to connect", "Failed to fetch"),
        "check the network and apt's proxy settings, then run the same command again",
    ),
    (
        PACKAGE_MISSING,
        "this Debian has no package",
        ("Unable to locate package", "no installation candidate", "Can't find a source"),
        "look at the sources in /etc/apt: PinCompute needs Debian 12's `main`",
    ),
)


def _judge(packages: list[str], output: str) -> Problem:
    """apt's words as ours, with the lines that say why."""
    said = [line for line in output.splitlines() if line.startswith(("E:", "W:", "dpkg"))]
    note = "\n".join(said[-3:])
    for reason, what, symptoms, mend in SYMPTOMS:
        if any(symptom in output for symptom in symptoms):
            return Problem(reason, f"{what} {', '.join(packages)}", note=note, next=mend)
    return Problem(PACKAGE_MISSING, f"apt-get could not bring {', '.join(packages)}", note=note)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    speech = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | speech,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _folder() -> Path:
    return Path(setting("cache")) / "debian"


@contextmanager
def _locked() -> Iterator[None]:
    """Two commands at once do not fetch the same thing: one waits."""
    _folder().mkdir(parents=True, exist_ok=True)
    with (_folder() / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield
