"""Builds images without Docker: a Debian base by mmdebstrap, and Containerfiles by buildah."""

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
from pincompute.base.progress import Progress, format_duration
from pincompute.base.reasons import DISK_FULL, IMAGE_BUILD_FAILED
from pincompute.base.settings import setting_value
from pincompute.engine.debian import ensure_programs
from pincompute.engine.file_lock import exclusive_lock

CONTAINERFILE_NAMES = ("Containerfile", "Dockerfile")

SUITE = "bookworm"
# Files that containers do not need; every file adds to the time in which a node extracts the image.
_EXCLUDED = (
    "bash-completion/*", "doc/*", "info/*", "lintian/*", "locale/*", "man/*", "zoneinfo/posix/*", "zoneinfo/right/*",
)  # fmt: skip


def base_arguments(*more: str) -> tuple[str, ...]:
    """Arguments of mmdebstrap for the base with further packages."""
    return (
        "--variant=minbase",
        f"--include={','.join(('python3', 'ca-certificates', 'usr-is-merged', *more))}",
        # /usr is merged from the start; otherwise Debian installs Perl to merge it.
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *(f"--dpkgopt=path-exclude=/usr/share/{files}" for files in _EXCLUDED),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        # mmdebstrap takes these from the machine on which it runs.
        '--customize-hook=rm "$1/etc/hostname" "$1/etc/resolv.conf"',
    )


BASE_ARGUMENTS = base_arguments()
"""Default base: Python and the root certificates of Debian."""


def find_containerfile(folder: Path) -> Path | None:
    return next((folder / name for name in CONTAINERFILE_NAMES if (folder / name).is_file()), None)


@contextmanager
def build_folder(progress: Progress) -> Iterator[Path]:
    """A temporary folder for one build at a time. Leftovers of an interrupted build are removed first."""
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                IMAGE_BUILD_FAILED,
                "building an image needs root",
                note="loading an image that was built elsewhere does not",
                next="docker save IMAGE -o FILE, then pin image load FILE",
            )
        )
    ensure_programs("buildah", "mmdebstrap")
    folder = images_folder() / "workshop"
    with exclusive_lock(images_folder() / "lock", "building an image", progress.echo):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def build_image(  # noqa: PLR0913  (what to build, and how)
    work_folder: Path,
    folder: Path,
    target: Path,
    progress: Progress,
    *,
    base: tuple[str, ...] = BASE_ARGUMENTS,
    arguments: Sequence[str] = (),
) -> None:
    """Build a folder with a Containerfile into `target`, an OCI archive."""
    file = find_containerfile(folder.resolve())
    assert file, "callers check that there is a Containerfile"
    if re.search(r"^ARG BASE\b", file.read_text(), re.MULTILINE):
        arguments = (*arguments, f"--build-arg=BASE=oci-archive:{_base(work_folder, base, progress)}")
    with _report_duration(f"image of {file.parent.name}", progress):
        _buildah(work_folder, file, target, progress, *arguments)


def images_folder() -> Path:
    return Path(setting_value("cache")) / "images"


def _base(work_folder: Path, base: tuple[str, ...], progress: Progress) -> Path:
    """Debian with Python as an OCI archive, cached by its arguments."""
    key = hashlib.sha256(repr((SUITE, base)).encode()).hexdigest()[:16]
    archive = images_folder() / f"base-{key}.tar"
    if archive.exists():
        return archive
    context = work_folder / "base"
    context.mkdir()
    (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
    with _report_duration("Debian base of images", progress):
        _run(
            ["mmdebstrap", *base, *_apt_network_options(), SUITE, str(context / "root.tar"), *_mirrors()],
            work_folder,
            progress,
        )
        _buildah(work_folder, context / "Containerfile", archive, progress)
    return archive


def _mirrors() -> list[str]:
    """Debian mirrors of this machine's apt; if there are none, mmdebstrap uses its default."""
    line = "$(CREATED_BY) $(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = subprocess.run(["apt-get", "indextargets", "--format", line], capture_output=True, text=True, check=False)
    ours = re.compile(rf"Packages Debian {SUITE}\S* (deb .+ main)")
    return sorted({found[1] for each in listed.stdout.splitlines() if (found := ours.fullmatch(each))})


def _apt_network_options() -> list[str]:
    """Proxy and certificate settings of this machine's apt."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [f"--aptopt={line.rstrip(';')}" for line in dump.splitlines() if line.startswith("Acquire::http")]


def _buildah(work_folder: Path, file: Path, target: Path, progress: Progress, *arguments: str) -> None:
    """Run buildah reproducibly: timestamps of all files are 0."""
    fresh = work_folder / "fresh.tar"
    # In its own mount namespace, so that its mounts are gone even if it is killed.
    command = [
        "unshare",
        "--mount",
        "buildah",
        "--root",
        str(work_folder / "root"),
        "--runroot",
        str(work_folder / "run"),
        "build",
    ]
    options = ["--isolation", "chroot", "--timestamp", "0", "--tag", f"oci-archive:{fresh}", "--file", str(file)]
    _run([*command, *options, *arguments, str(file.parent)], work_folder, progress)
    shutil.move(fresh, target)


def _run(command: list[str], work_folder: Path, progress: Progress) -> None:
    last: deque[str] = deque(maxlen=12)
    with subprocess.Popen(
        command, env=os.environ | {"TMPDIR": str(work_folder), "LC_ALL": "C"}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line.rstrip())
            progress.update(line.rstrip())
    if process.returncode != 0:
        output = "\n".join(last)
        reason = DISK_FULL if "no space left on device" in output.lower() else IMAGE_BUILD_FAILED
        raise Refused(Problem(reason, "image build failed", note=output))


@contextmanager
def _report_duration(what: str, progress: Progress) -> Iterator[None]:
    progress.echo(f"building the {what}")
    begun = time.monotonic()
    outcome = "failed after"
    try:
        yield
        outcome = "built in"
    finally:
        progress.echo(f"{outcome} {format_duration(time.monotonic() - begun)}")
