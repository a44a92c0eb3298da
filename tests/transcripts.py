"""Transcripts: what a person types and sees, replayed. Only what differs from run to run is compared by shape."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "transcripts").glob("*.md"))

_SHAPES = (
    (re.compile(r"\d+\.\d s\b"), "T s"),
    (re.compile(r"\d+\.\d MB\b"), "S MB"),
    # An age, and what stands between it and its neighbours in a table.
    (re.compile(r" *\b(\d+[dhm])?\d+[hms]\b *"), " AGE "),
    (re.compile(r"\d+ layers?, \d+ new"), "layers"),
    # What stands beyond an address moves with the length of its port.
    (re.compile(r"localhost:\d+ *"), "localhost:PORT "),
)


class Command(NamedTuple):
    line: int
    words: str
    output: str


def needs(page: Path) -> str:
    """`a platform`, `a real node`, or nothing."""
    found = re.match(r"<!-- needs: (.+) -->", page.read_text())
    return found[1] if found else ""


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append(Command(number, line[2:], ""))
        elif inside and line.startswith("> ") and not found[-1].output:
            # What a shell asks for before a command is whole.
            found[-1] = found[-1]._replace(words=f"{found[-1].words}\n{line[2:]}")
        elif inside:
            found[-1] = found[-1]._replace(output=f"{found[-1].output}{line}\n")
    return found


def replay(page: Path, folder: Path, variables: Mapping[str, str]) -> None:
    """Every command in its order, in a folder with the examples; each must say what the page says."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-c", command.words],
            cwd=folder,
            env={**os.environ, **variables, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=180,
        )
        said = done.stdout + (f"exit {done.returncode}\n" if done.returncode else "")
        told = f"{page.name}:{command.line}: $ {command.words}\n{said}"
        assert _alike(said, command.output), told


def _alike(said: str, wanted: str) -> bool:
    """`…` stands for words that are not ours to choose."""
    pattern = re.escape(_shaped(wanted)).replace(re.escape("…"), ".*")
    return re.fullmatch(pattern, _shaped(said), re.DOTALL) is not None


def _shaped(text: str) -> str:
    for pattern, shape in _SHAPES:
        text = pattern.sub(shape, text)
    return text
