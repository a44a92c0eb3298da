"""Runs system programs such as `ip` and `umount`; a failure becomes a Problem."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Folders of system programs. The PATH of a shell that was started by `su` may lack some."""

COMMAND_ENVIRONMENT = {"PATH": SYSTEM_PATH, "LC_ALL": "C"}


def run(command: Sequence[str | Path], stdin: str | bytes = b"") -> str:
    """Run a program with this standard input, and return its output."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(command, input=given, check=False, capture_output=True, env=COMMAND_ENVIRONMENT)
    if done.returncode != 0:
        line = " ".join(str(word) for word in command)
        output = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Refused(Problem(PART_FAILED, f"`{line}` failed with exit code {done.returncode}", note=output))
    return done.stdout.decode(errors="replace")


def succeeds(command: Sequence[str | Path]) -> bool:
    return subprocess.run(command, check=False, capture_output=True, env=COMMAND_ENVIRONMENT).returncode == 0
