"""Progress of long operations: a line that is redrawn on a terminal, or an occasional line in a pipe."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from pincompute.base.clock import Clock, SystemClock

# Output to a pipe is usually a CI log: frequent enough to show that the command works, rare enough to be read.
PIPE_INTERVAL_S = 15.0
TERMINAL_INTERVAL_S = 0.1


class Progress:
    def __init__(self, out: TextIO | None = None, clock: Clock | None = None) -> None:
        self._out = out or sys.stderr
        self._clock = clock or SystemClock()
        self._redraws = self._out.isatty()
        self._interval_s = TERMINAL_INTERVAL_S if self._redraws else PIPE_INTERVAL_S
        self._shown = ""
        # Operations that finish within the first interval print no update.
        self._next = self._clock.monotonic() + self._interval_s

    def echo(self, line: str) -> None:
        """Print a line that stays."""
        self.erase()
        print(line, file=self._out, flush=True)

    def update(self, line: str) -> None:
        """Replace the current progress line. Calls are rate-limited; most of frequent ones print nothing."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval_s
        if not self._redraws:
            print(line, file=self._out, flush=True)
            return
        self.erase()
        # A wrapped line could not be erased.
        self._shown = line[: shutil.get_terminal_size().columns - 1]
        print(self._shown, end="", file=self._out, flush=True)

    def force_next_update(self) -> None:
        """Skip the rate limit for the next update."""
        self._next = 0.0

    def erase(self) -> None:
        """Remove the progress line from a terminal, before other output or at the end."""
        if self._shown:
            print("\r\033[K", end="", file=self._out)
            self._shown = ""


def format_duration(seconds: float) -> str:
    """`4.2 s`, `48 s`, `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"
