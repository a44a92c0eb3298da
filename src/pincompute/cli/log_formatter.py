"""Formats log lines for a terminal, with a prefix and colour for each replica."""

from __future__ import annotations

import click

from pincompute.api.logs import LogItem, LogLine, LogMarker, LogReplicas
from pincompute.base.printable import printable

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


class LogFormatter:
    """Formats the items of one workload's logs. Lines of a single replica get no prefix."""

    def __init__(self, workload: str, *, raw: bool = False) -> None:
        self._workload = workload
        self._raw = raw
        """Whether control characters stay in the lines. A terminal would act on them."""
        self._replicas: list[str] = []

    def format_item(self, item: LogItem) -> list[str]:
        match item:
            case LogReplicas(replicas=replicas):
                self._replicas = replicas
                return []
            case LogMarker(replica="", text=text):
                return [click.style(f"-- {printable(text)} --", dim=True)]
            case LogMarker(replica=replica, text=text):
                return [click.style(f"-- {self._workload}/{replica} {printable(text)} --", dim=True)]
            case LogLine():
                text = item.text if self._raw else printable(item.text)
                return [f"{self._prefix(item)}{text}"]

    def _prefix(self, line: LogLine) -> str:
        width = max(map(len, self._replicas), default=0)
        replica = line.replica.ljust(width) if len(self._replicas) > 1 else ""
        source = " ".join(each for each in (replica, line.container) if each)
        return click.style(f"{source} | ", fg=self._colour(line.replica)) if source else ""

    def _colour(self, replica: str) -> str:
        index = self._replicas.index(replica) if replica in self._replicas else 0
        return _COLOURS[index % len(_COLOURS)]
