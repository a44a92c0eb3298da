"""Small programs of the system, run to their end; what one complains of becomes a Problem."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a system's programs are: the shell of somebody who became root may lack folders."""

VARIABLES = {"PATH": PATH, "LC_ALL": "C"}


def run(command: Sequence[str | Path], words: str | bytes = b"") -> str:
    """Hand it the words, and return what it says."""
    given = words.encode() if isinstance(words, str) else words
    done = subprocess.run(command, input=given, check=False, capture_output=True, env=VARIABLES)
    if done.returncode != 0:
        line = " ".join(str(word) for word in command)
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Refused(Problem(PART_FAILED, f"`{line}` failed with {done.returncode}", note=said))
    return done.stdout.decode(errors="replace")


def succeeds(command: Sequence[str | Path]) -> bool:
    return subprocess.run(command, check=False, capture_output=True, env=VARIABLES).returncode == 0
