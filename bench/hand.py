"""What a person's hand feels: how long `pin` itself takes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from bench.figures import PIN, PYTHON, ROOT, Figure, paired


def quiet(*words: str) -> None:
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def figures() -> Iterator[Figure]:
    lines = len((ROOT / "examples" / "hello.yaml").read_text().splitlines())
    yield Figure("U1.1", "lines of a service's file", [lines], 12, "lines")
    yield paired(
        "P18",
        "pin --help : python -c pass",
        lambda: quiet(PIN, "--help"),
        lambda: quiet(PYTHON, "-c", "pass"),
        runs=20,
        bar=8,
    )
