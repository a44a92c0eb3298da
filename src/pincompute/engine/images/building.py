"""Builds images without Docker: a Debian base by mmdebstrap, and on it what a Containerfile says, by buildah."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DISK_FULL, IMAGE_BUILD_FAILED
from pincompute.base.settings import setting
from pincompute.engine.debian import bring
from pincompute.engine.lock import held
from pincompute.engine.progress import Progress, span

FILES = ("Containerfile", "Dockerfile")

SUITE = "bookworm"
# Nobody looks these up in a container, and every file costs when a node unpacks the image.
_NEEDLESS = (
    "bash-completion/*", "doc/*", "info/*", "lintian/*", "locale/*", "man/*", "zoneinfo/posix/*", "zoneinfo/right/*",
)  # fmt: skip


def base(*more: str) -> tuple[str, ...]:
    """How mmdebstrap makes it, with more packages."""
    return (
        "--variant=minbase",
        f"--include={','.join(('python3', 'ca-certificates', 'usr-is-merged', *more))}",
        # Folders are merged from the start; otherwise Debian brings all of Perl to merge them.
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *(f"--dpkgopt=path-exclude=/usr/share/{files}" for files in _NEEDLESS),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        # mmdebstrap leaves these of the machine that ran it.
        '--customize-hook=rm "$1/etc/hostname" "$1/etc/resolv.conf"',
    )


BASE = base()
"""What every image of ours stands on: Python, and the roots that browsers trust."""


def containerfile(folder: Path) -> Path | None:
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


@contextmanager
def workshop(progress: Progress) -> Iterator[Path]:
    """A folder to build in, one build at a time. It is gone afterwards, and so is what a killed one left."""
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                IMAGE_BUILD_FAILED,
                "only root can build images on this machine",
                note="images that were built elsewhere can be brought in by anybody",
                next="docker save IMAGE -o FILE, then pin image load FILE",
            )
        )
    bring("buildah", "mmdebstrap")
    folder = images() / "workshop"
    with held(images() / "lock", "building an image", progress.say):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def build(  # noqa: PLR0913  (what to build, and how)
    shop: Path,
    folder: Path,
    target: Path,
    progress: Progress,
    *,
    base: tuple[str, ...] = BASE,
    words: Sequence[str] = (),
) -> None:
    """Build a folder that holds a Containerfile into `target`, an OCI archive."""
    file = containerfile(folder.resolve())
    assert file, "whoever calls has looked"
    if re.search(r"^ARG BASE\b", file.read_text(), re.MULTILINE):
        words = (*words, f"--build-arg=BASE=oci-archive:{_base(shop, base, progress)}")
    with _told(f"image of {file.parent.name}", progress):
        _buildah(shop, file, target, progress, *words)


def images() -> Path:
    return Path(setting("cache")) / "images"


def _base(shop: Path, base: tuple[str, ...], progress: Progress) -> Path:
    """Debian with Python as an OCI archive: made once, and again when we ask for something else."""
    key = hashlib.sha256(repr((SUITE, base)).encode()).hexdigest()[:16]
    archive = images() / f"base-{key}.tar"
    if archive.exists():
        return archive
    context = shop / "base"
    context.mkdir()
    (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
    with _told("Debian base for images, once", progress):
        _run(["mmdebstrap", *base, *_reach(), SUITE, str(context / "root.tar"), *_mirrors()], shop, progress)
        _buildah(shop, context / "Containerfile", archive, progress)
    return archive


def _mirrors() -> list[str]:
    """Where this machine's own apt finds Debian; where it has none, mmdebstrap knows."""
    line = "$(CREATED_BY) $(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = subprocess.run(["apt-get", "indextargets", "--format", line], capture_output=True, text=True, check=False)
    ours = re.compile(rf"Packages Debian {SUITE}\S* (deb .+ main)")
    return sorted({found[1] for each in listed.stdout.splitlines() if (found := ours.fullmatch(each))})


def _reach() -> list[str]:
    """This machine's way to the mirrors: proxies and certificates that apt was told of."""
    told = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [f"--aptopt={line.rstrip(';')}" for line in told.splitlines() if line.startswith("Acquire::http")]


def _buildah(shop: Path, file: Path, target: Path, progress: Progress, *words: str) -> None:
    """The same content gives the same image: no file carries the time at which it was built."""
    fresh = shop / "fresh.tar"
    # In a mount namespace of its own, so that what it mounts ends with it, however it ends.
    command = ["unshare", "--mount", "buildah", "--root", str(shop / "root"), "--runroot", str(shop / "run"), "build"]
    shape = ["--isolation", "chroot", "--timestamp", "0", "--tag", f"oci-archive:{fresh}", "--file", str(file)]
    _run([*command, *shape, *words, str(file.parent)], shop, progress)
    shutil.move(fresh, target)


def _run(command: list[str], shop: Path, progress: Progress) -> None:
    last: deque[str] = deque(maxlen=12)
    with subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(shop), "LC_ALL": "C"}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line.rstrip())
            progress.show(line.rstrip())
    if process.returncode != 0:
        said = "\n".join(last)
        reason = DISK_FULL if "no space left on device" in said.lower() else IMAGE_BUILD_FAILED
        raise Refused(Problem(reason, "the image could not be built", note=said))


@contextmanager
def _told(what: str, progress: Progress) -> Iterator[None]:
    progress.say(f"building the {what}")
    begun = time.monotonic()
    outcome = "failed after"
    try:
        yield
        outcome = "built in"
    finally:
        progress.say(f"{outcome} {span(time.monotonic() - begun)}")
