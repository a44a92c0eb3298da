"""Figures: values measured several times, with their spread and threshold."""

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
    """ID in the table of goals, or a name."""
    label: str
    values: Sequence[float]
    threshold: float | None = None
    """Upper limit, or with `higher_is_better` lower limit; None if the figure is only reported."""
    unit: str = "s"
    ours: float | None = None
    peer: float | None = None
    """The medians behind a ratio."""
    higher_is_better: bool = False
    aim: float | None = None
    """Where we want to be, while the threshold must hold."""
    load: float | None = None
    """Load average of the machine while it was measured."""
    void: int = 0
    """Pairs that do not count, because the API server was the limit in them."""

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def passes(self) -> bool:
        if self.threshold is None:
            return True
        return self.value >= self.threshold if self.higher_is_better else self.value <= self.threshold

    def line(self) -> str:
        bar = "" if self.threshold is None else f"bar {self.threshold:g}  {'holds' if self.passes else 'MISSED'}"
        spread = f"({min(self.values):.2f} to {max(self.values):.2f}, {len(self.values)} runs)"
        return f"{self.id:<14} {self.value:>9.2f} {self.unit:<8} {spread:<30} {self.label:<62} {bar}".rstrip()

    def json(self) -> dict[str, object]:
        whole: dict[str, object] = {
            "value": self.value,
            "spread": [min(self.values), max(self.values)],
            "unit": self.unit,
        }
        others = (("ours", self.ours), ("peer", self.peer), ("load", self.load))
        return whole | {name: value for name, value in others if value is not None}


def paired_ratio(  # noqa: PLR0917  (a table's row)
    id_: str, what: str, ours: Callable[[], object], peer: Callable[[], object], runs: int, bar: float
) -> Figure:
    """Ratio of our time to the peer's. Both are measured in turn, so that drift of the machine affects both."""
    ours()
    peer()
    pairs = [(measure_seconds(ours), measure_seconds(peer)) for _ in range(runs)]
    ratios = [first / second for first, second in pairs]
    medians = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Figure(id_, what, ratios, bar, "x", *medians)


def measure_seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run_command(*words: str, check: bool = True) -> str:
    """Runs a command and returns its output, including stderr. Exits if the command fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def write_figures(figures: Sequence[Figure], file: Path) -> None:
    """Updates the file; figures that were not measured this time keep their values."""
    before = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(before | {figure.id: figure.json() for figure in figures}, indent=2) + "\n")
