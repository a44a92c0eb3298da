"""Re-executes a process in place: it keeps its process id and its children."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

REEXEC_VARIABLE = "PINCOMPUTE_SUCCESSOR"
"""Environment variable that names the file with the new command. A process that has it re-executes on SIGHUP; any other
process would end."""


class ReexecTarget(msgspec.Struct, frozen=True):
    command: list[str]
    environment: dict[str, str]


def reexec(file: Path) -> None:
    """Replace this process at once: open files and sockets close, child processes continue."""
    target = msgspec.json.decode(file.read_bytes(), type=ReexecTarget)
    os.execve(target.command[0], target.command, target.environment)  # noqa: S606  (only our parent writes the file)
