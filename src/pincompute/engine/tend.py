"""Tends the parts of a platform: what is healthy stays, what is missing is started, what changed starts anew."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec

from pincompute.base.problem import Refused
from pincompute.engine import processes, renew
from pincompute.engine.down import GROUND, end
from pincompute.engine.home import Home
from pincompute.engine.parts import Part
from pincompute.engine.ports import require_free
from pincompute.engine.processes import Process
from pincompute.engine.readiness import place
from pincompute.engine.record import Record, write

Stages = list[list[Part]]

# One that runs and does not answer may still be on its way: somebody may just have started it.
PATIENCE_WITH_RUNNING = 10.0


class Tender:
    """Keeps the record true at every step: killed at any point, the next one knows all that was started."""

    def __init__(self, home: Home, record: Record, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._keep(record)

    def require_ports(self, stages: Stages) -> None:
        """Before anything is touched: may every part listen where it is to?"""
        for part in chain(*stages):
            listens = place(part.ready)
            # In a namespace of its own nobody else can be.
            if listens and not part.namespace:
                require_free(*listens, part.name, self._home, self._record.processes.values())

    def end_superfluous(self, stages: Stages, *, everything: bool = False) -> None:
        """Strays of a start that was killed, parts that are no longer wanted, and parts that are wanted otherwise."""
        known = {process.pid for process in self._record.processes.values()}
        end(each for each in processes.marked(self._home) if each.leader and each.pid not in known)
        wanted = {part.name: part for part in chain(*stages)}
        running = [each for each in self._record.processes.values() if processes.running(each)]
        leaving = [each for each in running if not _stays(each, wanted.get(each.part))]
        if everything or any(each.part in GROUND for each in leaving):
            # With the ground under them gone, the others would only stand in the way of its end.
            leaving = running
        end(leaving)
        staying = {each.part: each for each in running if each not in leaving}
        self._keep(msgspec.structs.replace(self._record, processes=staying))

    def start(self, stage: list[Part]) -> None:
        """All at once; return when all of them are ready."""
        tended = {part.name: (part, self._healthy(part) or self._start(part)) for part in stage}
        processes.await_ready(tended, self._home)

    def process(self, part: str) -> Process | None:
        return self._record.processes.get(part)

    def _healthy(self, part: Part) -> Process | None:
        process = self.process(part.name)
        if process is None or not processes.running(process):
            return None
        if process.command != processes.fingerprint(part):
            renewed = renew.renew(part, process, self._home)
            if renewed is None:
                self._say(f"{part.name} (pid {process.pid}) does not become what it is to be; it is started anew")
                processes.stop([process])
                return None
            self._remember(renewed)
            process = renewed
        try:
            processes.await_ready({part.name: (part, process)}, self._home, PATIENCE_WITH_RUNNING)
        except Refused:
            self._say(f"{part.name} (pid {process.pid}) does not answer; it is started anew")
            processes.stop([process])
            return None
        return process

    def _start(self, part: Part) -> Process:
        process = processes.start(part, self._home)
        self._remember(process)
        return process

    def _remember(self, process: Process) -> None:
        self._keep(msgspec.structs.replace(self._record, processes={**self._record.processes, process.part: process}))

    def _keep(self, record: Record) -> None:
        self._record = record
        write(self._home, record)


def _stays(process: Process, wanted: Part | None) -> bool:
    """As it is, or to become in its turn what is wanted."""
    return wanted is not None and (process.command == processes.fingerprint(wanted) or renew.can(wanted, process))
