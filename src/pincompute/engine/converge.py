"""Brings the processes of a platform to the wanted parts: starts missing ones, restarts changed or unhealthy ones, and
keeps the others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec

from pincompute.base.problem import Refused
from pincompute.engine import part_reexec, processes
from pincompute.engine.down import BASE_PARTS, stop_in_order
from pincompute.engine.home import Home
from pincompute.engine.parts import Part
from pincompute.engine.ports import require_free
from pincompute.engine.processes import Process
from pincompute.engine.readiness import listen_address
from pincompute.engine.record import PlatformRecord, write_record
from pincompute.engine.supervisor import run_before_restart, write_descriptions

Stages = list[list[Part]]

RUNNING_SILENT_TIMEOUT_S = 30.0
"""Seconds in which a running part neither answers nor uses CPU until it is restarted. Restarting a part that is slow
because the machine is busy makes the machine busier, so a part that uses CPU is waited for."""


class Converger:
    """Starts and stops parts, and updates the record after every step, so that a command that is killed at any point
    leaves no unrecorded process."""

    def __init__(self, home: Home, record: PlatformRecord, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._write(record)

    def require_ports(self, stages: Stages) -> None:
        """Check before anything is changed that every part can listen on its port."""
        for part in chain(*stages):
            listens = listen_address(part.probe)
            # In the platform's own network namespace there are no foreign listeners.
            if listens and not part.network_namespace:
                require_free(*listens, part.name, self._home, self._record.processes.values())

    def stop_superfluous(self, stages: Stages, *, everything: bool = False) -> None:
        """Stop processes that the record does not know, unwanted parts, and parts whose description or certificates
        changed."""
        known = {process.pid for process in self._record.processes.values()}
        stop_in_order(each for each in processes.find_marked(self._home) if each.leader and each.pid not in known)
        wanted = {part.name: part for part in chain(*stages)}
        running = [each for each in self._record.processes.values() if processes.is_running(each)]
        leaving = [each for each in running if not _is_kept(each, wanted.get(each.part), self._home)]
        if everything or any(each.part in BASE_PARTS for each in leaving):
            # The API server and etcd shut down slowly while they have clients, so all parts stop.
            leaving = running
        stop_in_order(leaving)
        staying = {
            each.part: processes.with_certificates(each, wanted[each.part], self._home)
            for each in running
            if each not in leaving
        }
        self._write(msgspec.structs.replace(self._record, processes=staying))
        write_descriptions(self._home, wanted.values())

    def start_stage(self, stage: list[Part]) -> None:
        """Start the parts of a stage in parallel; return when all are ready."""
        stage_processes = {part.name: (part, self._running_and_ready(part) or self._start(part)) for part in stage}
        processes.await_ready(stage_processes, self._home)

    def restart(self, part: Part) -> None:
        """Restart one running part, and wait until it is ready.

        The record keeps the ended process until then: if this command is killed in between, the supervisor restarts
        the part.
        """
        process = self.process_of(part.name)
        if process is not None and not part_reexec.can_reexec(part, process):
            processes.stop([process])
            run_before_restart(part)
        self.start_stage([part])

    def record_renewal(self, renewed_at: str, problem: str) -> None:
        self._write(msgspec.structs.replace(self._record, certificates_renewed=renewed_at, renewal_problem=problem))

    @property
    def secrets_encrypted(self) -> bool:
        return self._record.secrets_encrypted

    def record_secrets_encrypted(self) -> None:
        self._write(msgspec.structs.replace(self._record, secrets_encrypted=True))

    def stop_part(self, name: str) -> None:
        """Stop one part; the next `start_stage` with it starts it again."""
        process = self.process_of(name)
        if process is not None:
            processes.stop([process])
            kept = {part: each for part, each in self._record.processes.items() if part != name}
            self._write(msgspec.structs.replace(self._record, processes=kept))

    def process_of(self, part: str) -> Process | None:
        return self._record.processes.get(part)

    def _running_and_ready(self, part: Part) -> Process | None:
        process = self.process_of(part.name)
        if process is None or not processes.is_running(process):
            return None
        if not processes.is_current(process, part, self._home):
            updated = part_reexec.reexec_part(part, process, self._home)
            if updated is None:
                self._say(f"restarting {part.name} (pid {process.pid}): re-execution timed out")
                processes.stop([process])
                return None
            self._record_process(updated)
            process = updated
        try:
            processes.await_ready({part.name: (part, process)}, self._home, RUNNING_SILENT_TIMEOUT_S)
        except processes.Silent:
            silent = f"neither answered nor used CPU for {RUNNING_SILENT_TIMEOUT_S:.0f} s"
            self._say(f"restarting {part.name} (pid {process.pid}): {silent}")
            processes.stop([process])
            return None
        except Refused:
            if processes.is_running(process):
                raise
            return None
        return process

    def _start(self, part: Part) -> Process:
        process = processes.start(part, self._home)
        self._record_process(process)
        return process

    def _record_process(self, process: Process) -> None:
        self._write(msgspec.structs.replace(self._record, processes={**self._record.processes, process.part: process}))

    def _write(self, record: PlatformRecord) -> None:
        self._record = record
        write_record(self._home, record)


def _is_kept(process: Process, wanted: Part | None, home: Home) -> bool:
    """Whether a process matches the wanted part, or can be updated by re-execution."""
    return wanted is not None and (
        processes.is_current(process, wanted, home) or part_reexec.can_reexec(wanted, process)
    )
