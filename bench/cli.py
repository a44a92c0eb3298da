"""Startup time of the CLI."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from bench.figures import PIN, PYTHON, ROOT, Figure, paired_ratio


def run_quietly(*words: str) -> None:
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def figures() -> Iterator[Figure]:
    lines = len((ROOT / "examples" / "hello.yaml").read_text().splitlines())
    yield Figure("U1.1", "lines of a service's file", [lines], 12, "lines")
    yield paired_ratio(
        "P18",
        "pin --help : python -c pass",
        lambda: run_quietly(PIN, "--help"),
        lambda: run_quietly(PYTHON, "-c", "pass"),
        runs=20,
        bar=8,
    )
