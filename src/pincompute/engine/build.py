"""Builds programs from pinned Go modules into a cache, which is keyed by a digest of the sources.

An interrupted build continues with the programs that are not finished.
"""

from __future__ import annotations

import hashlib
import os
import platform as machine
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress, format_duration
from pincompute.base.reasons import BUILD_FAILED, DISK_FULL, NETWORK_UNREACHABLE
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.platform import Programs
from pincompute.engine.toolchain import Go, find_go, go_environment

SOURCE = Path(__file__).parent / "source"
MANIFEST_FILE = "built.json"

_NO_NETWORK = re.compile(
    r"dial tcp|no such host|i/o timeout|network is unreachable|connection refused|proxyconnect|TLS handshake"
    r"|Bad Gateway|Service Unavailable|Gateway Timeout|unexpected EOF"
)


class Recipe(NamedTuple):
    """One program and the Go package it is built from."""

    program: str
    package: str
    flags: str = "-s -w"


class ModuleFiles(NamedTuple):
    """Files of a required module that are copied into a folder beside the programs."""

    module: str
    patterns: tuple[str, ...]
    target_folder: str


class GoModule(NamedTuple):
    """One Go module of this repository, and everything that is built from it."""

    name: str
    """Folder in the cache."""
    title: str
    """Shown in progress lines."""
    source: Path
    recipes: tuple[Recipe, ...]
    files: tuple[ModuleFiles, ...] = ()


class BuildManifest(msgspec.Struct, frozen=True):
    """Sizes and digests of all files of a finished build. It is written last: a folder that has it is complete."""

    go: str
    sizes: dict[str, int]
    sha256: dict[str, str]


def kubernetes_version() -> str:
    return pinned_version("k8s.io/kubernetes")


def kubernetes_module() -> GoModule:
    """Kubernetes, kwok, and kwok's stage files, which define the life cycle of simulated nodes and pods."""
    kinds = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    stages = ModuleFiles("sigs.k8s.io/kwok", tuple(f"kustomize/stage/{kind}/*.yaml" for kind in kinds), "stages")
    return GoModule("engine", f"Kubernetes {kubernetes_version()}", SOURCE, recipes(), (stages,))


def recipes() -> tuple[Recipe, ...]:
    # Without the linker flag Kubernetes reports v0.0.0, and its components refuse to work with one another.
    kubernetes = f"-s -w -X k8s.io/component-base/version.gitVersion={kubernetes_version()}"
    kwok = f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version={pinned_version('sigs.k8s.io/kwok')}"
    return (
        Recipe("kubernetes", ".", kubernetes),
        Recipe("kwok", "sigs.k8s.io/kwok/cmd/kwok", kwok),
        Recipe("dns", "./dns"),
        Recipe("pause", "./pause"),
    )


def content_key(module: GoModule) -> str:
    """Digest of everything that determines the result of a build."""
    digest = hashlib.sha256(repr((module.recipes, machine.machine())).encode())
    for file in sorted(file for file in module.source.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(module.source)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def find_built(cache: Path) -> Programs | None:
    """The engine's programs, if they are built."""
    folder = _folder(kubernetes_module(), cache)
    return Programs(folder) if _is_complete(folder) else None


def build_engine(cache: Path, progress: Progress) -> Programs:
    """The engine's programs; builds them if necessary."""
    return Programs(build_module(kubernetes_module(), cache, progress))


def build_module(module: GoModule, cache: Path, progress: Progress) -> Path:
    """The folder with the result of a module; builds it if necessary."""
    folder = _folder(module, cache)
    if _is_complete(folder):
        return folder
    go = find_go()
    with exclusive_lock(folder.with_suffix(".lock"), f"building {module.title}", progress.echo):
        if not _is_complete(folder):
            _Builder(module, go, folder, progress).run()
    return folder


def _folder(module: GoModule, cache: Path) -> Path:
    return cache / module.name / content_key(module)


def _is_complete(folder: Path) -> bool:
    try:
        manifest = msgspec.json.decode((folder / MANIFEST_FILE).read_bytes(), type=BuildManifest)
        # The sizes first: most damage shows there at once.
        return all((folder / name).stat().st_size == size for name, size in manifest.sizes.items()) and all(
            _sha256(folder / name) == digest for name, digest in manifest.sha256.items()
        )
    except (OSError, msgspec.DecodeError):
        return False


class _Builder:
    """One build in a `.half` folder beside the final one. Each program gets its name when it is complete; the folder is
    renamed to its final name at the end."""

    def __init__(self, module: GoModule, go: Go, folder: Path, progress: Progress) -> None:
        self._module = module
        self._go = go
        self._folder = folder
        self._unfinished = folder.with_suffix(".half")
        self._progress = progress
        self._started = time.monotonic()
        self._compiled = 0
        self._packages = 0

    def run(self) -> None:
        self._progress.echo(
            f"building {self._module.title} with Go {self._go.version}; later starts use the cached build"
        )
        self._progress.force_next_update()
        self._unfinished.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._fetch_sources()
            for number, recipe in enumerate(self._module.recipes, start=2):
                self._build(recipe, number)
            for files in self._module.files:
                self._copy(files)
            self._write_manifest()
        except OSError as error:
            raise Refused(_problem("writing the programs", [str(error)])) from error
        self._progress.echo(f"built in {format_duration(time.monotonic() - self._started)}")

    def _fetch_sources(self) -> None:
        fetched = 0

        def watch(line: str) -> None:
            nonlocal fetched
            fetched += line.startswith("go: downloading")
            if not line.startswith("go: "):
                self._packages += 1
            self._show(1, f"fetching sources, {fetched} modules")

        self._run("fetching the sources", ["list", "-deps", *(each.package for each in self._module.recipes)], watch)

    def _build(self, recipe: Recipe, number: int) -> None:
        target = self._unfinished / recipe.program
        if target.exists():  # finished by an interrupted build
            return

        def watch(line: str) -> None:
            self._compiled += not line.startswith("go: ")
            self._show(number, f"compiling {recipe.program}, {self._compiled} of at most {self._packages} packages")

        self._progress.force_next_update()
        self._show(number, f"compiling {recipe.program}")
        unfinished = target.with_name(f".{recipe.program}.{os.getpid()}")
        arguments = ["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", recipe.flags, "-o", str(unfinished)]
        try:
            self._run(f"building {recipe.program}", [*arguments, recipe.package], watch)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    def _copy(self, files: ModuleFiles) -> None:
        lines: list[str] = []
        self._run(f"finding {files.module}", ["list", "-m", "-f", "{{.Dir}}", files.module], lines.append)
        into = self._unfinished / files.target_folder
        into.mkdir(exist_ok=True)
        for file in sorted(file for pattern in files.patterns for file in Path(lines[-1]).glob(pattern)):
            if file.name != "kustomization.yaml":
                (into / file.name).write_bytes(file.read_bytes())

    def _write_manifest(self) -> None:
        for leftover in self._unfinished.glob(".*"):
            leftover.unlink()
        files = sorted(file for file in self._unfinished.rglob("*") if file.is_file() and file.name != MANIFEST_FILE)
        names = {str(file.relative_to(self._unfinished)): file for file in files}
        manifest = BuildManifest(
            go=self._go.version,
            sizes={name: file.stat().st_size for name, file in names.items()},
            sha256={name: _sha256(file) for name, file in names.items()},
        )
        (self._unfinished / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        # After a power failure the manifest must not be on disk without the programs.
        os.sync()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unfinished.rename(self._folder)

    def _run(self, doing: str, arguments: list[str], watch: Callable[[str], None]) -> None:
        last: deque[str] = deque(maxlen=12)
        command = [str(self._go.program), *arguments]
        with subprocess.Popen(
            command,
            cwd=self._module.source,
            env=go_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                last.append(line.rstrip())
                watch(line.rstrip())
        if process.returncode:
            raise Refused(_problem(doing, list(last)))

    def _show(self, step: int, doing: str) -> None:
        elapsed = time.monotonic() - self._started
        share = self._compiled / self._packages if self._packages else 0
        # Below a tenth the estimate is too inaccurate to show.
        left = f", about {format_duration(elapsed / share - elapsed)} left" if share > 0.1 else ""
        self._progress.update(
            f"step {step} of {1 + len(self._module.recipes)}: {doing} ({format_duration(elapsed)}{left})"
        )


def _problem(doing: str, last: list[str]) -> Problem:
    output = "\n".join(last)
    if "no space left on device" in output.lower():
        return Problem(
            DISK_FULL, f"{doing} failed: disk full", note=output, next="free 6 GB, then run the same command again"
        )
    if _NO_NETWORK.search(output):
        return Problem(
            NETWORK_UNREACHABLE,
            f"{doing} failed: Go modules could not be downloaded",
            note=output,
            next="check the network (`go env GOPROXY`), then run the same command again: it resumes",
        )
    return Problem(BUILD_FAILED, f"{doing} failed", note=output, next="run the same command again: it resumes")


def pinned_version(module: str, source: Path | None = None) -> str:
    """The version of a module that a go.mod requires; the engine's own go.mod by default."""
    folder = source or SOURCE
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", (folder / "go.mod").read_text(), re.MULTILINE)
    assert found, f"go.mod requires {module}"
    return found[1]


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
