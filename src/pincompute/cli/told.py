"""Lines of a workload as a person reads them: whose each is, and what happened between them."""

from __future__ import annotations

import click

from pincompute.api.logs import Copies, Line, Mark, Said

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


class Told:
    """With one copy alone, whose line it is goes without saying."""

    def __init__(self, workload: str) -> None:
        self._workload = workload
        self._copies: list[str] = []

    def lines(self, said: Said) -> list[str]:
        match said:
            case Copies(copies=copies):
                self._copies = copies
                return []
            case Mark(copy="", text=text):
                return [click.style(f"-- {text} --", dim=True)]
            case Mark(copy=copy, text=text):
                return [click.style(f"-- {self._workload}/{copy} {text} --", dim=True)]
            case Line():
                return [f"{self._prefix(said)}{said.text}"]

    def _prefix(self, line: Line) -> str:
        several = len(self._copies) > 1
        width = max(map(len, self._copies), default=0)
        whose = " ".join(each for each in (line.copy.ljust(width) if several else "", line.container) if each)
        return click.style(f"{whose} | ", fg=self._colour(line.copy)) if whose else ""

    def _colour(self, copy: str) -> str:
        place = self._copies.index(copy) if copy in self._copies else 0
        return _COLOURS[place % len(_COLOURS)]
