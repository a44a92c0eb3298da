"""Output of buildah: the steps as they begin, and the last lines of a step that fails."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Where
from pincompute.base.progress import format_duration
from pincompute.base.reasons import DISK_FULL, IMAGE_BUILD_FAILED
from pincompute.engine.images.dockerfile import Dockerfile, Instruction
from pincompute.engine.images.sandbox import MEMORY_BYTES, OUTPUT_BYTES, TIME_LIMIT_S, Ended

LAST_LINES = 20
_MAX_LINE = 600
_STEP_WIDTH = 100
_STEP = re.compile(r"(?:\[(\d{1,4})/\d{1,4}\] )?STEP (\d{1,4})/\d{1,4}: ")
_NO_NETWORK = re.compile(
    r"resolv(e|ing)|name resolution|network is unreachable|no such host|connection refused|bad address", re.IGNORECASE
)
_NO_SPACE = "no space left on device"
_KILLED = "subprocess exited on killed"
"""Message of buildah if SIGKILL ended a command."""


class BuildOutput:
    """Receives the bytes of buildah. A command of the build may print lines that look like steps: each step is shown
    once, with the text of the Dockerfile."""

    def __init__(self, dockerfile: Dockerfile, on_step: Callable[[str], None], on_line: Callable[[str], None]) -> None:
        self._dockerfile = dockerfile
        self._on_step = on_step
        self._on_line = on_line
        self._shown: set[int] = set()
        self._current: Instruction | None = None
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line)
        self._rest = _bounded(rest)

    def _line(self, raw: bytes) -> None:
        line = printable(_bounded(raw).decode(errors="replace").rstrip())
        found = _STEP.match(line)
        step = self._dockerfile.instruction(int(found[1] or 1), int(found[2])) if found else None
        if found is None or step is None or step.line in self._shown:
            self._last.append(line)
            self._on_line(line)
            return
        self._shown.add(step.line)
        self._current = step
        self._last.clear()
        self._on_step(f"{found[0]}{_shortened(step)}")

    def problem(self, file: str, ended: Ended) -> Problem:
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        step = self._current
        where = Where(file=file, line=step.line if step else 0)
        what = f"{_shortened(step)}: {_outcome(step, ended)}" if step else f"image build {_outcome(None, ended)}"
        note = "\n".join(self._last)
        reason = DISK_FULL if _NO_SPACE in note.lower() else IMAGE_BUILD_FAILED
        return Problem(reason, what, where, note=note, next=_next(step, note))


def _bounded(line: bytes) -> bytes:
    """Beginning and end of a long line: buildah gives the cause of an error last."""
    if len(line) <= _MAX_LINE:
        return line
    return line[: _MAX_LINE // 2] + " … ".encode() + line[-_MAX_LINE // 2 :]


def _shortened(step: Instruction) -> str:
    text = printable(str(step))
    return text if len(text) <= _STEP_WIDTH else f"{text[: _STEP_WIDTH - 1]}…"


def _outcome(step: Instruction | None, ended: Ended) -> str:
    if ended.timed_out:
        return f"not finished after {format_duration(TIME_LIMIT_S)}"
    if ended.output_exceeded:
        return f"more than {OUTPUT_BYTES >> 20} MiB of output"
    return f"failed with exit code {ended.code}" if step and step.keyword == "RUN" else "failed"


def _next(step: Instruction | None, note: str) -> str:
    if step is None or step.keyword != "RUN":
        return ""
    if _KILLED in note:
        return f"the command was killed; a build may use {MEMORY_BYTES >> 30} GiB of memory"
    if _NO_NETWORK.search(note):
        return "a build has no network: COPY what the command needs, or build elsewhere and pin image load FILE"
    return ""
