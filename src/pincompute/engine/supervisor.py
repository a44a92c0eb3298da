"""The supervisor: restarts parts of a platform that ended, with exponential backoff.

It is a part itself, started by `pin up` and stopped first by `pin down`. It restarts only recorded processes whose
fingerprint is that of the part that `pin up` described, and only while it holds the lock of the platform, so that it
never interferes with a command.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType

import msgspec
import structlog

from pincompute.base import logging as logs
from pincompute.base.problem import Refused
from pincompute.base.secure_files import write_private_file
from pincompute.engine import processes
from pincompute.engine.file_lock import try_exclusive_lock
from pincompute.engine.home import Home
from pincompute.engine.parts import NoProbe, Part
from pincompute.engine.processes import Process
from pincompute.engine.record import PlatformRecord, read_record, write_record

SUPERVISOR = "supervisor"

POLL_INTERVAL_S = 0.5
MAX_DELAY_S = 60.0
STABLE_S = 120.0
"""A part that ran this long is restarted without a delay when it ends."""
_BEFORE_RESTART_TIMEOUT_S = 5.0
RENEWAL_INTERVAL_S = 3600.0
RENEWAL_MODULE = "pincompute.engine.renewal"

_log = structlog.get_logger()


class PartDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor needs to restart a part as `pin up` would: a Part without its probe."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    network_namespace: str
    grace_period_s: float
    version: str
    reexecs: bool
    before_restart: tuple[str, ...]

    def part(self) -> Part:
        fields = msgspec.structs.asdict(self) | {"environment": MappingProxyType(self.environment)}
        return Part(probe=NoProbe(), **fields)


def write_descriptions(home: Home, parts: Iterable[Part]) -> None:
    """Write the descriptions of all parts, for the supervisor."""
    fields = ((part._asdict() | {"environment": dict(part.environment)}) for part in parts)
    described = [PartDescription(**{name: each[name] for name in PartDescription.__struct_fields__}) for each in fields]
    write_private_file(_file(home), msgspec.json.encode(described))


def read_descriptions(home: Home) -> dict[str, Part]:
    described = msgspec.json.decode(_file(home).read_bytes(), type=list[PartDescription])
    return {each.name: each.part() for each in described}


def _file(home: Home) -> Path:
    return home.configs / "parts.json"


class Backoff:
    """Delays between restarts of one part: none, then 1 s, doubled up to a minute; none again after a stable run."""

    def __init__(self) -> None:
        self._restarts = 0
        self._restarted_at = 0.0

    def due(self, now: float) -> bool:
        return not self._restarts or now >= self._restarted_at + self.delay_s

    @property
    def delay_s(self) -> float:
        # The exponent is bounded, as a part that never starts would overflow the float.
        return min(MAX_DELAY_S, 2.0 ** min(self._restarts - 1, 10)) if self._restarts else 0.0

    def restarted(self, now: float) -> None:
        self._restarts += 1
        self._restarted_at = now

    def running(self, now: float) -> None:
        if self._restarts and now - self._restarted_at > STABLE_S:
            self._restarts = 0


class Supervisor:
    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home = home
        self._clock = clock
        self._backoffs: dict[str, Backoff] = {}

    def check(self) -> list[str]:
        """Restart every part that ended and is due; returns their names."""
        ended = self.ended_and_due(read_record(self._home) or PlatformRecord())
        if not ended:
            return []
        with try_exclusive_lock(self._home.lock, "restarting parts that ended") as held:
            # While a command holds the lock, it starts or stops the parts itself. It may also have changed the
            # record or removed the platform in between, so both are read again.
            if not held or not self._home.root.exists():
                return []
            record = read_record(self._home)
            return [] if record is None else self._restart_all(record)

    def ended_and_due(self, record: PlatformRecord) -> list[Process]:
        now = self._clock()
        ended = []
        for process in record.processes.values():
            backoff = self._backoffs.setdefault(process.part, Backoff())
            if processes.is_running(process):
                backoff.running(now)
            elif backoff.due(now) and process.part != SUPERVISOR:
                ended.append(process)
        return ended

    def _restart_all(self, record: PlatformRecord) -> list[str]:
        ended = self.ended_and_due(record)
        described = read_descriptions(self._home)
        # Processes that the record does not know were left by a command that was killed. `pin up` stops them.
        unrecorded = {each.part for each in processes.find_marked(self._home) if each.leader}
        restarted = []
        for process in ended:
            part = described.get(process.part)
            if part is None or process.part in unrecorded or processes.fingerprint(part) != process.fingerprint:
                continue
            record = self._restart(part, process, record)
            restarted.append(part.name)
        return restarted

    def _restart(self, part: Part, ended: Process, record: PlatformRecord) -> PlatformRecord:
        backoff = self._backoffs[part.name]
        backoff.restarted(self._clock())
        run_before_restart(part)
        try:
            started = processes.start(part, self._home)
        except Refused as refused:
            _log.error("restart failed", part=part.name, error=refused.problems[0].what)
            return record
        changed = msgspec.structs.replace(
            record,
            processes={**record.processes, part.name: started},
            restarts={**record.restarts, part.name: record.restarts.get(part.name, 0) + 1},
        )
        write_record(self._home, changed)
        _log.warning(
            "part restarted", part=part.name, ended_pid=ended.pid, pid=started.pid, next_delay_s=backoff.delay_s
        )
        return changed


class RenewalTimer:
    """Starts the renewal of certificates once an hour, while no earlier one runs."""

    def __init__(
        self, start: Callable[[], subprocess.Popen[bytes]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._start = start
        self._clock = clock
        self._started_at = clock()
        self._running: subprocess.Popen[bytes] | None = None

    def poll(self) -> None:
        if self._running is not None and self._running.poll() is None:
            return
        self._running = None
        if self._clock() - self._started_at >= RENEWAL_INTERVAL_S:
            self._started_at = self._clock()
            self._running = self._start()


def run_before_restart(part: Part) -> None:
    if not part.before_restart:
        return
    try:
        subprocess.run(
            part.before_restart, check=True, capture_output=True, text=True, timeout=_BEFORE_RESTART_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        # The part is restarted in any case: without it the command cannot succeed later, either.
        _log.warning("command before restart failed", part=part.name, error=str(error))


def main() -> None:
    logs.configure(process=SUPERVISOR)
    root = Path(sys.argv[1])
    home = Home(root.name, root)
    supervisor = Supervisor(home)
    renewals = RenewalTimer(lambda: subprocess.Popen([sys.executable, "-m", RENEWAL_MODULE, str(root)]))
    _log.info("supervisor started", platform=home.name)
    # The folder is removed by `pin down --purge`; the process ends with it.
    while home.root.exists():
        try:
            supervisor.check()
            renewals.poll()
        except (Refused, OSError, msgspec.DecodeError) as error:
            # An unreadable record or a full disk: reported by `pin up`, and checked again here.
            _log.error("check failed", error=str(error))
        time.sleep(POLL_INTERVAL_S)


if __name__ == "__main__":
    main()
