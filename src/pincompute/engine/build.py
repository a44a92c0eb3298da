"""Builds programs from pinned Go modules, once for each content of the sources; goes on where it was interrupted."""

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
from pincompute.base.reasons import BUILD_FAILED, DISK_FULL, NETWORK_UNREACHABLE
from pincompute.engine.lock import held
from pincompute.engine.platform import Programs
from pincompute.engine.progress import Progress, span
from pincompute.engine.toolchain import Go, environment, find_go

SOURCE = Path(__file__).parent / "source"
SEAL = "built.json"

_NO_NETWORK = re.compile(
    r"dial tcp|no such host|i/o timeout|network is unreachable|connection refused|proxyconnect|TLS handshake"
    r"|Bad Gateway|Service Unavailable|Gateway Timeout|unexpected EOF"
)


class Recipe(NamedTuple):
    """One program, and the Go package it is built from."""

    program: str
    package: str
    flags: str = "-s -w"


class Files(NamedTuple):
    """What comes with a module that is built from, and goes with the programs into a folder."""

    module: str
    patterns: tuple[str, ...]
    into: str


class Module(NamedTuple):
    """One Go module of ours, and all that is made of it."""

    name: str
    """Its folder in the cache."""
    about: str
    """What a person is told that is built."""
    source: Path
    recipes: tuple[Recipe, ...]
    files: tuple[Files, ...] = ()


class Seal(msgspec.Struct, frozen=True):
    """Written last: what has it is whole. It tells what each file must be."""

    go: str
    sizes: dict[str, int]
    sha256: dict[str, str]


def kubernetes_version() -> str:
    return pinned("k8s.io/kubernetes")


def kubernetes() -> Module:
    """What becomes of simulated nodes and pods is told to kwok by files of its own module."""
    kinds = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    stages = Files("sigs.k8s.io/kwok", tuple(f"kustomize/stage/{kind}/*.yaml" for kind in kinds), "stages")
    return Module("engine", f"Kubernetes {kubernetes_version()}", SOURCE, recipes(), (stages,))


def recipes() -> tuple[Recipe, ...]:
    # Without its version Kubernetes takes itself for v0.0.0 and its parts refuse one another.
    kubernetes = f"-s -w -X k8s.io/component-base/version.gitVersion={kubernetes_version()}"
    kwok = f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version={pinned('sigs.k8s.io/kwok')}"
    return (
        Recipe("kubernetes", ".", kubernetes),
        Recipe("kwok", "sigs.k8s.io/kwok/cmd/kwok", kwok),
        Recipe("dns", "./dns"),
        Recipe("pause", "./pause"),
    )


def content_key(module: Module) -> str:
    """One name for all that decides what is built."""
    digest = hashlib.sha256(repr((module.recipes, machine.machine())).encode())
    for file in sorted(file for file in module.source.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(module.source)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def built(cache: Path) -> Programs | None:
    """The engine's programs, if they are there and whole."""
    folder = _folder(kubernetes(), cache)
    return Programs(folder) if _whole(folder) else None


def build(cache: Path, progress: Progress) -> Programs:
    """Give the engine's programs, built if they must be."""
    return Programs(made(kubernetes(), cache, progress))


def made(module: Module, cache: Path, progress: Progress) -> Path:
    """The folder with what is made of a module."""
    folder = _folder(module, cache)
    if _whole(folder):
        return folder
    go = find_go()
    with held(folder.with_suffix(".lock"), f"building {module.about}", progress.say):
        if not _whole(folder):
            _Builder(module, go, folder, progress).run()
    return folder


def _folder(module: Module, cache: Path) -> Path:
    return cache / module.name / content_key(module)


def _whole(folder: Path) -> bool:
    try:
        seal = msgspec.json.decode((folder / SEAL).read_bytes(), type=Seal)
        return all((folder / name).stat().st_size == size for name, size in seal.sizes.items())
    except (OSError, msgspec.DecodeError):
        return False


class _Builder:
    """One build: each program is finished under its name in a folder beside the final one, which is renamed at last."""

    def __init__(self, module: Module, go: Go, folder: Path, progress: Progress) -> None:
        self._module = module
        self._go = go
        self._folder = folder
        self._half = folder.with_suffix(".half")
        self._progress = progress
        self._begun = time.monotonic()
        self._compiled = 0
        self._packages = 0

    def run(self) -> None:
        self._progress.say(f"building {self._module.about} with Go {self._go.version}, once; later starts take seconds")
        self._progress.begin()
        self._half.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._fetch()
            for number, recipe in enumerate(self._module.recipes, start=2):
                self._build(recipe, number)
            for files in self._module.files:
                self._copy(files)
            self._seal()
        except OSError as error:
            raise Refused(_problem("writing the programs", [str(error)])) from error
        self._progress.say(f"built in {span(time.monotonic() - self._begun)}")

    def _fetch(self) -> None:
        fetched = 0

        def watch(line: str) -> None:
            nonlocal fetched
            fetched += line.startswith("go: downloading")
            if not line.startswith("go: "):
                self._packages += 1
            self._show(1, f"fetching sources, {fetched} modules")

        self._run("fetching the sources", ["list", "-deps", *(each.package for each in self._module.recipes)], watch)

    def _build(self, recipe: Recipe, number: int) -> None:
        target = self._half / recipe.program
        if target.exists():  # an interrupted build had got this far
            return

        def watch(line: str) -> None:
            self._compiled += not line.startswith("go: ")
            self._show(number, f"compiling {recipe.program}, {self._compiled} of at most {self._packages} packages")

        self._progress.begin()
        self._show(number, f"compiling {recipe.program}")
        fresh = target.with_name(f".{recipe.program}.{os.getpid()}")
        words = ["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", recipe.flags, "-o", str(fresh)]
        try:
            self._run(f"building {recipe.program}", [*words, recipe.package], watch)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)

    def _copy(self, files: Files) -> None:
        lines: list[str] = []
        self._run(f"finding {files.module}", ["list", "-m", "-f", "{{.Dir}}", files.module], lines.append)
        into = self._half / files.into
        into.mkdir(exist_ok=True)
        for file in sorted(file for pattern in files.patterns for file in Path(lines[-1]).glob(pattern)):
            if file.name != "kustomization.yaml":
                (into / file.name).write_bytes(file.read_bytes())

    def _seal(self) -> None:
        for leftover in self._half.glob(".*"):
            leftover.unlink()
        files = sorted(file for file in self._half.rglob("*") if file.is_file() and file.name != SEAL)
        names = {str(file.relative_to(self._half)): file for file in files}
        seal = Seal(
            go=self._go.version,
            sizes={name: file.stat().st_size for name, file in names.items()},
            sha256={name: _sha256(file) for name, file in names.items()},
        )
        (self._half / SEAL).write_bytes(msgspec.json.format(msgspec.json.encode(seal)))
        # A seal must not outlive a power cut that the programs did not.
        os.sync()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._half.rename(self._folder)

    def _run(self, doing: str, words: list[str], watch: Callable[[str], None]) -> None:
        last: deque[str] = deque(maxlen=12)
        command = [str(self._go.program), *words]
        with subprocess.Popen(
            command,
            cwd=self._module.source,
            env=environment(),
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
        elapsed = time.monotonic() - self._begun
        share = self._compiled / self._packages if self._packages else 0
        # Before a tenth is done the guess would be a fancy.
        left = f", some {span(elapsed / share - elapsed)} left" if share > 0.1 else ""
        self._progress.show(f"step {step} of {1 + len(self._module.recipes)}: {doing} ({span(elapsed)}{left})")


def _problem(doing: str, last: list[str]) -> Problem:
    said = "\n".join(last)
    if "no space left on device" in said.lower():
        return Problem(
            DISK_FULL, f"{doing} failed: the disk is full", note=said, next="free 6 GB, then run the same command"
        )
    if _NO_NETWORK.search(said):
        return Problem(
            NETWORK_UNREACHABLE,
            f"{doing} failed: the Go modules could not be fetched",
            note=said,
            next="check the network (`go env GOPROXY`), then run the same command: it goes on where it was",
        )
    return Problem(
        BUILD_FAILED, f"{doing} failed", note=said, next="run the same command again: it goes on where it was"
    )


def pinned(module: str, source: Path | None = None) -> str:
    """The version that the engine's go.mod requires, or another one."""
    folder = source or SOURCE
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", (folder / "go.mod").read_text(), re.MULTILINE)
    assert found, f"go.mod requires {module}"
    return found[1]


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
