"""A figure: measured several times, with its spread, beside the bar it must hold."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PIN = str(ROOT / ".venv" / "bin" / "pin")
PYTHON = str(ROOT / ".venv" / "bin" / "python")


class Figure(NamedTuple):
    id: str
    """As in the table of goals, or a name of its own."""
    what: str
    values: Sequence[float]
    bar: float | None = None
    """At most this; nothing where it is only told."""
    unit: str = "s"
    ours: float | None = None
    peer: float | None = None
    """The medians behind a ratio."""
    at_least: bool = False
    """The bar is a floor."""

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def holds(self) -> bool:
        if self.bar is None:
            return True
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def line(self) -> str:
        bar = "" if self.bar is None else f"bar {self.bar:g}  {'holds' if self.holds else 'MISSED'}"
        spread = f"({min(self.values):.2f} to {max(self.values):.2f}, {len(self.values)} runs)"
        return f"{self.id:<14} {self.value:>9.2f} {self.unit:<8} {spread:<30} {self.what:<62} {bar}".rstrip()

    def json(self) -> dict[str, object]:
        whole: dict[str, object] = {
            "value": self.value,
            "spread": [min(self.values), max(self.values)],
            "unit": self.unit,
        }
        return whole | {name: value for name, value in (("ours", self.ours), ("peer", self.peer)) if value is not None}


def paired(  # noqa: PLR0917  (a table's row)
    id_: str, what: str, ours: Callable[[], object], peer: Callable[[], object], runs: int, bar: float
) -> Figure:
    """Ours and the peer in turn, A B A B: the machine's drift hits both, so that their ratio can be trusted."""
    ours()
    peer()
    pairs = [(timed(ours), timed(peer)) for _ in range(runs)]
    ratios = [first / second for first, second in pairs]
    medians = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Figure(id_, what, ratios, bar, "x", *medians)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(*words: str, check: bool = True) -> str:
    """A command's words, those on stderr with them."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def write(figures: Sequence[Figure], file: Path) -> None:
    """Figures that were not measured this time stay as they were."""
    before = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(before | {figure.id: figure.json() for figure in figures}, indent=2) + "\n")
