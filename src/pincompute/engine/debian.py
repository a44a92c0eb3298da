"""Programs from Debian packages: found on this machine, unpacked into the cache, or installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import PACKAGE_MISSING
from pincompute.base.settings import setting_value
from pincompute.engine import apt
from pincompute.engine.file_lock import exclusive_lock


class Package(NamedTuple):
    name: str
    programs: tuple[str, ...]
    daemon: bool = False
    """Installing the package would start a daemon, so it is unpacked into the cache, which needs no root either."""


PACKAGES = (
    Package("containerd", ("containerd", "containerd-shim-runc-v2", "ctr"), daemon=True),
    Package("docker-registry", ("docker-registry",), daemon=True),
    Package("nginx", ("nginx",), daemon=True),
    Package("default-jre-headless", ("java",)),
    Package("prometheus", ("prometheus", "promtool"), daemon=True),
    Package("runc", ("runc",)),
    Package("containernetworking-plugins", ("host-local", "loopback", "portmap", "ptp")),
    Package("iptables", ("iptables",)),
    Package("nftables", ("nft",)),
    Package("conntrack", ("conntrack",)),
    Package("ethtool", ("ethtool",)),
    Package("socat", ("socat",)),
    Package("iproute2", ("ip",)),
    Package("buildah", ("buildah",)),
    Package("mmdebstrap", ("mmdebstrap",)),
    # For tests: a static program that implements most Unix tools.
    Package("busybox-static", ("busybox",)),
    # For tests of the pages.
    Package("chromium", ("chromium",)),
    # For tests of the desk's PostgreSQL store.
    Package("postgresql-15", ("postgres", "initdb"), daemon=True),
    Package("postgresql-client-15", ("pg_dump", "pg_restore"), daemon=True),
)

# Folders in which Debian installs programs. The PATH of an unprivileged user lacks some of them.
PROGRAM_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/cni", "usr/lib/postgresql/15/bin")


def ensure_programs(*programs: str) -> None:
    """Make programs available: unpack packages with daemons, install the others."""
    names = missing_packages(programs)
    lacking = [package for package in PACKAGES if package.name in names]
    unpack_packages([package.name for package in lacking if package.daemon])
    install_packages([package.name for package in lacking if not package.daemon])


def missing_packages(programs: Iterable[str]) -> list[str]:
    """Packages of those programs that are not available."""
    absent = {name for name in programs if find_program(name) is None}
    return [package.name for package in PACKAGES if absent & set(package.programs)]


def find_program(name: str) -> Path | None:
    """Path of a program, None if there is none. An installed program takes precedence over an unpacked one."""
    places = [*os.get_exec_path(), *(f"/{folder}" for folder in PROGRAM_FOLDERS)]
    for unpacked in sorted(_folder().glob(f"{_package_of(name)}_*"), reverse=True):
        places += [str(unpacked / folder) for folder in PROGRAM_FOLDERS]
    found = shutil.which(name, path=os.pathsep.join(places))
    return Path(found) if found else None


def unpacked_folder(package: str) -> Path:
    """Folder of the newest unpacked version of a package; one that does not exist if there is none."""
    found = sorted(_folder().glob(f"{package}_*"))
    return found[-1] if found else _folder() / package


def program_version(name: str) -> str:
    """Debian version of a program, as shown by `pin status`; empty if no Debian package provides it."""
    found = find_program(name)
    unpacked = [each for each in found.parents if each.parent == _folder()] if found else []
    return unpacked[0].name.partition("_")[2] if unpacked else apt.installed_version(_package_of(name))


def unpack_packages(packages: Iterable[str]) -> None:
    """Unpack packages into folders of the cache. Starts no daemon and needs no root."""
    with _cache_lock():
        wanted = [name for name in packages if not any(_folder().glob(f"{name}_*"))]
        if not wanted:
            return
        Progress().echo(f"downloading Debian packages: {', '.join(wanted)}")
        with tempfile.TemporaryDirectory(dir=_folder(), prefix=".new-") as folder:
            for file in apt.download(wanted, Path(folder)):
                _unpack(file)


def install_packages(packages: Iterable[str]) -> None:
    """Install packages for the whole machine, as root."""
    wanted = list(packages)
    if not wanted:
        return
    apt.require_root(wanted)
    with _cache_lock():
        Progress().echo(f"installing Debian packages: {', '.join(wanted)}")
        apt.install(wanted)


def _unpack(file: Path) -> None:
    """Unpack into a temporary folder and rename it, so that an interrupted unpacking is never found by its name."""
    package, version, _ = file.name.split("_")
    unpacked = file.with_suffix("")
    apt.unpack(file, unpacked)
    _check_libraries(package, unpacked)
    unpacked.rename(_folder() / f"{package}_{version}")


def _check_libraries(package: str, root: Path) -> None:
    """Reject a program with missing libraries here, with their names, instead of failing when it starts."""
    places = os.pathsep.join(str(root / folder) for folder in PROGRAM_FOLDERS)
    programs = [name for each in PACKAGES if each.name == package for name in each.programs]
    for found in filter(None, (shutil.which(name, path=places) for name in programs)):
        if absent := apt.missing_libraries(Path(found)):
            raise Refused(
                Problem(
                    PACKAGE_MISSING,
                    f"{Path(found).name} of Debian's {package}: libraries not installed: {', '.join(absent)}",
                    next=f"install the libraries that `apt-cache depends {package}` lists",
                )
            )


def _package_of(program_name: str) -> str:
    return next(package.name for package in PACKAGES if program_name in package.programs)


def _folder() -> Path:
    return Path(setting_value("cache")) / "debian"


def _cache_lock() -> AbstractContextManager[None]:
    """Lock of the cache: of two concurrent commands that fetch packages, one waits."""
    return exclusive_lock(_folder() / "lock", "downloading Debian packages", Progress().echo)
