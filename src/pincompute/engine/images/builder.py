"""Builds images without Docker: a Debian base by mmdebstrap, and Dockerfiles by buildah in a sandbox."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.progress import Progress, format_duration
from pincompute.base.reasons import DISK_FULL, DOCKERFILE_UNSUPPORTED, IMAGE_BUILD_FAILED
from pincompute.base.settings import setting_value
from pincompute.engine.debian import ensure_programs
from pincompute.engine.file_lock import exclusive_lock, try_exclusive_lock
from pincompute.engine.images import sandbox
from pincompute.engine.images.bases import write_bases
from pincompute.engine.images.build_output import LAST_LINES, BuildOutput
from pincompute.engine.images.dockerfile import MAX_BYTES, Options, declares, expand_bases, read_dockerfile
from pincompute.engine.images.format import machine_platform
from pincompute.engine.nodes.mounts import unmount_all
from pincompute.kube.image_registry import ImageRegistry

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


BASE_IMAGE = "pincompute-base"
"""Name of the base in a build; no image of the registry has it."""


class Build(NamedTuple):
    """What to build."""

    folder: Path
    file: Path | None = None
    """Default: the Containerfile or Dockerfile of the folder."""
    arguments: Mapping[str, str] = {}
    target: str = ""
    base: tuple[str, ...] = BASE_ARGUMENTS


def find_containerfile(folder: Path) -> Path | None:
    return next((folder / name for name in CONTAINERFILE_NAMES if (folder / name).is_file()), None)


@contextmanager
def build_folder(progress: Progress) -> Iterator[Path]:
    """A temporary folder for one build. Leftovers of builds that were killed are removed first."""
    if os.geteuid() != 0:
        raise Refused(
            Problem(
                IMAGE_BUILD_FAILED,
                "building an image needs root",
                note="loading an image that was built elsewhere does not",
                next="docker save IMAGE -o FILE, then pin image load FILE",
            )
        )
    ensure_programs("buildah", "mmdebstrap", "runc")
    builds = images_folder() / "builds"
    builds.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        with exclusive_lock(images_folder() / "lock", "preparing a build", progress.echo):
            _remove_leftovers(builds)
            folder = Path(tempfile.mkdtemp(dir=builds))
            stack.enter_context(exclusive_lock(folder / "lock", "building an image", progress.echo))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(builds: Path) -> None:
    for folder in builds.iterdir():
        with try_exclusive_lock(folder / "lock", "removing a build") as unused:
            if unused:
                sandbox.remove(folder)
                # Mounts of a command that was killed: what they show is not part of the build.
                unmount_all(folder)
                shutil.rmtree(folder, ignore_errors=True)


async def build_image(registry: ImageRegistry, build: Build, target: Path, progress: Progress) -> None:
    """Build an image into `target`, an OCI archive."""
    folder = build.folder.resolve()
    file = build.file or find_containerfile(folder)
    assert file, "callers check that there is a Containerfile"
    text = _read(file)
    arguments = {"BASE": BASE_IMAGE, **build.arguments} if declares(text, "BASE") else build.arguments
    here = machine_platform()
    options = Options(arguments, build.target, f"{here.os}/{here.architecture}")
    dockerfile = read_dockerfile(str(file), text, options)
    base = await _base(registry, build.base, progress) if BASE_IMAGE in dockerfile.images else None
    with build_folder(progress) as work, _report_duration(f"image of {folder.name}", progress):
        bases = work / "bases"
        bases.mkdir()
        found = {}
        if base:
            os.link(base, bases / "base.tar")
            found[BASE_IMAGE] = f"oci-archive:{sandbox.BASES}/base.tar"
        images = {name: line for name, line in dockerfile.images.items() if name not in found}
        found |= await write_bases(registry, bases, images, str(file))
        (work / "Dockerfile").write_text(expand_bases(text, dockerfile))
        output = BuildOutput(dockerfile, progress.echo, progress.update)
        ended = await sandbox.run(work, folder, buildah_arguments(options, found), output.feed)
        if ended.code != 0 or not (work / "image.tar").is_file():
            raise Refused(output.problem(str(file), ended))
        shutil.move(work / "image.tar", target)


def buildah_arguments(options: Options, bases: Mapping[str, str]) -> list[str]:
    """Command in the sandbox. The times of all files are 0, so that an unchanged folder has the same digest."""
    storage = ("--root=/build/store", "--runroot=/build/tmp/run", "--storage-driver=overlay")
    return [
        "buildah",
        *storage,
        "build",
        "--isolation=chroot",
        "--timestamp=0",
        "--pull-never",
        *(f"--build-context={name}=container-image://{place}" for name, place in bases.items()),
        *(f"--build-arg={name}={value}" for name, value in options.arguments.items()),
        *((f"--target={options.target}",) if options.target else ()),
        f"--tag=oci-archive:{sandbox.IMAGE}",
        f"--file={sandbox.DOCKERFILE}",
        sandbox.CONTEXT,
    ]


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        what = f"not a text file: {error}"
        raise Refused(Problem(DOCKERFILE_UNSUPPORTED, what, Where(file=str(file)))) from error


def images_folder() -> Path:
    return Path(setting_value("cache")) / "images"


async def _base(registry: ImageRegistry, base: tuple[str, ...], progress: Progress) -> Path:
    """Debian with Python as an OCI archive, cached by its arguments."""
    key = hashlib.sha256(repr((SUITE, base)).encode()).hexdigest()[:16]
    archive = images_folder() / f"base-{key}.tar"
    with exclusive_lock(images_folder() / f"base-{key}.lock", "building the base of images", progress.echo):
        if archive.exists():
            return archive
        with build_folder(progress) as work, _report_duration("Debian base of images", progress):
            context = work / "base"
            context.mkdir()
            (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
            places = (SUITE, str(context / "root.tar"), *_mirrors())
            _run([*sandbox.ENDS_WITH_PARENT, "mmdebstrap", *base, *_apt_network_options(), *places], work, progress)
            await build_image(registry, Build(context), archive, progress)
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


def _run(command: list[str], work_folder: Path, progress: Progress) -> None:
    last: deque[str] = deque(maxlen=LAST_LINES)
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
