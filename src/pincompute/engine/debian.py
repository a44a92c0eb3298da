"""Programs that come from Debian's packages: found on this machine, unpacked into our cache, or installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PACKAGE_MISSING
from pincompute.base.settings import setting
from pincompute.engine import apt
from pincompute.engine.lock import held
from pincompute.engine.progress import Progress


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
    # For tests: one program without libraries that can be nearly all others.
    Package("busybox-static", ("busybox",)),
    # For tests, too: a desk's record may lie in one.
    Package("postgresql-15", ("postgres", "initdb"), daemon=True),
    Package("postgresql-client-15", ("pg_dump", "pg_restore"), daemon=True),
)

# Where Debian puts programs. An ordinary user's PATH lacks some of these folders.
FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/cni", "usr/lib/postgresql/15/bin")


def bring(*programs: str) -> None:
    """Make these programs be there: unpack what can be unpacked, install the rest."""
    names = missing(programs)
    lacking = [package for package in PACKAGES if package.name in names]
    fetch([package.name for package in lacking if package.daemon])
    install([package.name for package in lacking if not package.daemon])


def missing(programs: Iterable[str]) -> list[str]:
    """The packages that would bring those of the programs that are not there."""
    absent = {name for name in programs if program(name) is None}
    return [package.name for package in PACKAGES if absent & set(package.programs)]


def program(name: str) -> Path | None:
    """Where a program is: the machine's own before an unpacked one; None when it is nowhere."""
    places = [*os.get_exec_path(), *(f"/{folder}" for folder in FOLDERS)]
    for unpacked in sorted(_folder().glob(f"{_owner(name)}_*"), reverse=True):
        places += [str(unpacked / folder) for folder in FOLDERS]
    found = shutil.which(name, path=os.pathsep.join(places))
    return Path(found) if found else None


def version(name: str) -> str:
    """Debian's version of a program that is there, as `pin status` shows it; empty where it is not Debian's."""
    found = program(name)
    unpacked = [each for each in found.parents if each.parent == _folder()] if found else []
    return unpacked[0].name.partition("_")[2] if unpacked else apt.installed_version(_owner(name))


def fetch(packages: Iterable[str]) -> None:
    """Unpack packages beside each other in our cache. Nothing of them is started and no root is needed."""
    with _alone():
        wanted = [name for name in packages if not any(_folder().glob(f"{name}_*"))]
        if not wanted:
            return
        Progress().say(f"fetching {', '.join(wanted)} from Debian")
        with tempfile.TemporaryDirectory(dir=_folder(), prefix=".new-") as folder:
            for file in apt.download(wanted, Path(folder)):
                _unpack(file)


def install(packages: Iterable[str]) -> None:
    """Install packages for the whole machine, as root."""
    wanted = list(packages)
    if not wanted:
        return
    apt.require_root(wanted)
    with _alone():
        Progress().say(f"installing {', '.join(wanted)} from Debian")
        apt.install(wanted)


def _unpack(file: Path) -> None:
    """An interrupted unpacking leaves only a folder that nobody looks at."""
    package, version, _ = file.name.split("_")
    fresh = file.with_suffix("")
    apt.unpack(file, fresh)
    _check_libraries(package, fresh)
    fresh.rename(_folder() / f"{package}_{version}")


def _check_libraries(package: str, root: Path) -> None:
    """A Debian with Python has all that nginx needs; whoever lacks something anyway shall hear of it here."""
    places = os.pathsep.join(str(root / folder) for folder in FOLDERS)
    programs = [name for each in PACKAGES if each.name == package for name in each.programs]
    for found in filter(None, (shutil.which(name, path=places) for name in programs)):
        if absent := apt.missing_libraries(Path(found)):
            raise Refused(
                Problem(
                    PACKAGE_MISSING,
                    f"{Path(found).name} from Debian's {package} needs {', '.join(absent)}, which this machine lacks",
                    next=f"install the libraries that `apt-cache depends {package}` lists",
                )
            )


def _owner(program_name: str) -> str:
    return next(package.name for package in PACKAGES if program_name in package.programs)


def _folder() -> Path:
    return Path(setting("cache")) / "debian"


def _alone() -> AbstractContextManager[None]:
    """Two commands at once do not fetch the same thing: one waits."""
    return held(_folder() / "lock", "fetching from Debian", Progress().say)
