"""Updates a running part by re-execution, so that its listening sockets stay open."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import msgspec

from pincompute.base.reexec import REEXEC_VARIABLE, ReexecTarget
from pincompute.base.secure_files import write_private_file
from pincompute.engine import proc, processes
from pincompute.engine.home import Home
from pincompute.engine.loaded_certificates import loaded_certificates_digest
from pincompute.engine.parts import Part
from pincompute.engine.processes import Process

REEXEC_TIMEOUT_S = 10.0


def can_reexec(part: Part, process: Process) -> bool:
    """Whether the running version of a part supports re-execution."""
    return part.reexecs and processes.is_running(process) and REEXEC_VARIABLE in proc.environment(process.pid)


def reexec_part(part: Part, process: Process, home: Home) -> Process | None:
    """Ask a part to re-execute itself as described.

    Returns the process with its new fingerprint and certificates, or None if it timed out: then it must be restarted.
    """
    certificates = loaded_certificates_digest(part, home)
    wanted = ReexecTarget(list(part.command), processes.part_environment(part, home))
    write_private_file(Path(wanted.environment[REEXEC_VARIABLE]), msgspec.json.encode(wanted))
    processes.send_signal(process, signal.SIGHUP)
    deadline = time.monotonic() + REEXEC_TIMEOUT_S
    while time.monotonic() < deadline and processes.is_running(process):
        if (
            proc.command_line(process.pid) == wanted.command
            and part.environment.items() <= proc.environment(process.pid).items()
        ):
            return msgspec.structs.replace(
                process,
                fingerprint=processes.fingerprint(part),
                grace_period_s=part.grace_period_s,
                certificates=certificates,
            )
        time.sleep(processes.POLL_INTERVAL_S)
    return None
