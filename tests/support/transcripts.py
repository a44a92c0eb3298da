"""Replays the transcripts of the documentation, and compares the output. Values that differ in each run are masked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = sorted((ROOT / "docs" / "transcripts").glob("*.md"))

_MASKS = (
    (re.compile(r"\d+\.\d s\b"), "T s"),
    (re.compile(r"\d+\.\d MB\b"), "S MB"),
    # An age, with the padding around it in a table.
    (re.compile(r" *\b(\d+[dhm])?\d+[hms]\b *"), " AGE "),
    (re.compile(r"\d+ layers?, \d+ new"), "layers"),
    # A port, with the padding behind it, which depends on the port's length.
    (re.compile(r"localhost:\d+ *"), "localhost:PORT "),
)


class Command(NamedTuple):
    line: int
    text: str
    output: str


def required_platform(page: Path) -> str:
    """Return `a platform`, `a real node`, `a bare cluster`, or an empty string."""
    found = re.match(r"<!-- needs: (.+) -->", page.read_text())
    return found[1] if found else ""


def parse_commands(page: Path) -> list[Command]:
    commands: list[Command] = []
    in_console = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            in_console = line == "```console"
        elif in_console and line.startswith("$ "):
            commands.append(Command(number, line[2:], ""))
        elif in_console and line.startswith("> ") and not commands[-1].output:
            # A continuation line of the command.
            commands[-1] = commands[-1]._replace(text=f"{commands[-1].text}\n{line[2:]}")
        elif in_console:
            commands[-1] = commands[-1]._replace(output=f"{commands[-1].output}{line}\n")
    return commands


def replay_transcript(page: Path, folder: Path, variables: Mapping[str, str]) -> None:
    """Run all commands in order, in a folder with the examples, and compare their output with the page."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for command in parse_commands(page):
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=folder,
            env={**os.environ, **variables, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=180,
        )
        output = done.stdout + (f"exit {done.returncode}\n" if done.returncode else "")
        assert _matches(output, command.output), f"{page.name}:{command.line}: $ {command.text}\n{output}"


def _matches(output: str, expected: str) -> bool:
    """Compare masked output; `…` in the expected output matches any text."""
    pattern = re.escape(_mask(expected)).replace(re.escape("…"), ".*")
    return re.fullmatch(pattern, _mask(output), re.DOTALL) is not None


def _mask(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text
