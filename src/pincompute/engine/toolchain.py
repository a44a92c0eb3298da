"""The Go that builds the engine: the one on the PATH where it is new enough, else the one that a wheel brought."""

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

LEAST = (1, 26)


class Go(NamedTuple):
    program: Path
    version: str


def find_go() -> Go:
    seen = []
    for program in _candidates():
        version = _version(program)
        if version >= LEAST:
            return Go(program, ".".join(map(str, version)))
        seen.append(f"{program} is {'.'.join(map(str, version)) or 'no Go'}")
    least = ".".join(map(str, LEAST))
    raise Refused(
        Problem(
            TOOLCHAIN_MISSING,
            f"Kubernetes is built with Go {least} or newer, and this machine has none",
            note="\n".join(seen),
            next="pip install 'pincompute[go]'",
        )
    )


def environment() -> dict[str, str]:
    """For every call of Go: what is pinned decides, not what a person has configured for their own work."""
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
    asked = subprocess.run(
        [program, "env", "GOVERSION"], env=environment(), capture_output=True, text=True, check=False
    )
    found = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", asked.stdout)
    return tuple(int(number) for number in found.groups() if number) if found else ()
