"""What a person sees of long work: one line that is redrawn on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from pincompute.base.clock import Clock, SystemClock

# A pipe ends up in somebody's log: often enough to see that it is alive, seldom enough to be read.
PIPE_PAUSE = 15.0
TERMINAL_PAUSE = 0.1


class Progress:
    def __init__(self, out: TextIO | None = None, clock: Clock | None = None) -> None:
        self._out = out or sys.stderr
        self._clock = clock or SystemClock()
        self._redraws = self._out.isatty()
        self._pause = TERMINAL_PAUSE if self._redraws else PIPE_PAUSE
        self._shown = ""
        # What is done in no time needs no words.
        self._next = self._clock.monotonic() + self._pause

    def say(self, line: str) -> None:
        """A line that stays."""
        self._wipe()
        print(line, file=self._out, flush=True)

    def show(self, line: str) -> None:
        """A line that the next one takes the place of. Said too often, it is only shown now and then."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + self._pause
        if not self._redraws:
            print(line, file=self._out, flush=True)
            return
        self._wipe()
        # A line that wraps cannot be wiped again.
        self._shown = line[: shutil.get_terminal_size().columns - 1]
        print(self._shown, end="", file=self._out, flush=True)

    def begin(self) -> None:
        """Whatever is shown next is shown at once."""
        self._next = 0.0

    def _wipe(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=self._out)
            self._shown = ""


def span(seconds: float) -> str:
    """As a person says it: `4.2 s`, `48 s`, `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"
