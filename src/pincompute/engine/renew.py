"""Has a running part become its next version, so that what it serves is not interrupted for it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import msgspec

from pincompute.base.certificates import write_private
from pincompute.base.successor import VARIABLE, Successor
from pincompute.engine import proc, processes
from pincompute.engine.home import Home
from pincompute.engine.parts import Part
from pincompute.engine.processes import Process

PATIENCE = 10.0


def can(part: Part, process: Process) -> bool:
    """An older version may not know how."""
    return part.renews and processes.running(process) and VARIABLE in proc.variables(process.pid)


def renew(part: Part, process: Process, home: Home) -> Process | None:
    """What it is then; nothing where it does not, and is to be started anew."""
    wanted = Successor(list(part.command), processes.variables(part, home))
    write_private(Path(wanted.environment[VARIABLE]), msgspec.json.encode(wanted))
    processes.send(process, signal.SIGHUP)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and processes.running(process):
        if (
            proc.words(process.pid) == wanted.command
            and part.environment.items() <= proc.variables(process.pid).items()
        ):
            return msgspec.structs.replace(process, command=processes.fingerprint(part), ending=part.ending)
        time.sleep(processes.POLL)
    return None
