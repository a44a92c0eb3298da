"""Pages of figures: written from saved measurements of one run, and the same again whenever they are rendered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import ROOT
from bench.provenance import rounded

PICTURES = ROOT / "docs" / "plots"
Measurements = dict[str, Any]


class MeasuredPage(NamedTuple):
    """A page of `docs`, and the file that has all of its figures."""

    page: Path
    measured: Path
    render: Callable[[Measurements], str]
    """Renders also a page without figures, before the first whole run."""
    pictures: Callable[[Measurements], dict[str, str]]
    """SVG by file name."""

    def saved(self) -> Measurements:
        """The measurements of the last whole run; empty before the first one."""
        found: Measurements = json.loads(self.measured.read_text()) if self.measured.exists() else {}
        return found

    def write(self) -> None:
        measured = self.saved()
        self.page.write_text(self.render(measured))
        for name, content in self.pictures(measured).items():
            (PICTURES / name).write_text(content)


def save_measurements(whole: Measurements, file: Path, *, indent: int | None = None) -> None:
    """Replaces the file as a whole, so that all its figures are of one run."""
    file.write_text(json.dumps(rounded(whole), indent=indent) + "\n")


def picture_section(names: Iterable[str]) -> Iterator[str]:
    yield ""
    yield "## Pictures"
    for name in names:
        yield ""
        yield f"![{name.removesuffix('.svg').replace('-', ' ')}](plots/{name})"
