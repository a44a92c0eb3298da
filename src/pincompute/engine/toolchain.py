"""Finds a Go toolchain for the engine: on the PATH if it is new enough, else in the `go` wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import TOOLCHAIN_MISSING

MIN_GO_VERSION = (1, 26)


class Go(NamedTuple):
    program: Path
    version: str


def find_go() -> Go:
    rejected = []
    for program in _candidates():
        version = _version(program)
        if version >= MIN_GO_VERSION:
            return Go(program, ".".join(map(str, version)))
        rejected.append(f"{program}: {'.'.join(map(str, version)) or 'not a Go program'}")
    least = ".".join(map(str, MIN_GO_VERSION))
    raise Refused(
        Problem(
            TOOLCHAIN_MISSING,
            f"no Go {least} or newer on this machine; Kubernetes is built with it",
            note="\n".join(rejected),
            next="pip install 'pincompute[go]'",
        )
    )


def go_environment() -> dict[str, str]:
    """Environment of every call of Go: overrides user configuration that would change the pinned build."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
    }


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which("go"):
        yield Path(on_path)
    wheel = importlib.util.find_spec("go")
    if wheel and wheel.origin and (program := Path(wheel.origin).parent / "bin" / "go").exists():
        yield program


def _version(program: Path) -> tuple[int, ...]:
    reported = subprocess.run(
        [program, "env", "GOVERSION"], env=go_environment(), capture_output=True, text=True, check=False
    )
    found = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", reported.stdout)
    return tuple(int(number) for number in found.groups() if number) if found else ()
