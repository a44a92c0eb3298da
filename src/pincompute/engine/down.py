"""`pin down`: stops the processes of a platform in the order in which they shut down quickly."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import FOREIGN_PROCESS
from pincompute.engine import network_slots, processes
from pincompute.engine.control_plane import API_SERVER, ETCD
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.home import Home, require_platform
from pincompute.engine.nodes import network, real_node
from pincompute.engine.platform import Programs
from pincompute.engine.processes import Process, ProcessState, find_marked
from pincompute.engine.record import PlatformRecord, read_record, write_record
from pincompute.engine.supervisor import SUPERVISOR
from pincompute.engine.up_options import platform_of

BASE_PARTS = (API_SERVER, ETCD)
"""Parts that all others are clients of, in the order in which they stop."""


def down(home: Home, progress: Progress, *, purge: bool) -> None:
    if not find_marked(home) and not processes.find_detached(home):
        require_platform(home)
    with exclusive_lock(home.lock, f"pin down --name {home.name}", progress.echo):
        record = _record_or_empty(home, progress)
        foreign = foreign_process_problems(record)
        stopped = stop_platform(home, record)
        if purge:
            _purge(home)
        else:
            write_record(home, msgspec.structs.replace(record, processes={}, restarts={}))
    progress.echo(f"platform {home.name}: {'removed' if purge else 'down'}, {stopped} processes stopped")
    if foreign:
        raise Refused(*foreign)


def stop_platform(home: Home, record: PlatformRecord) -> int:
    """Stop all processes, then remove traces of the real node and its network. Returns the number of processes."""
    recorded = record.processes.values()
    running = {each.pid for each in recorded if processes.is_running(each)}
    ours = [*recorded, *(each for each in find_marked(home) if each.pid not in running)]
    stopped = sum(processes.is_running(each) for each in ours)
    stop_in_order(each for each in ours if each.leader)
    slot = network_slots.owned_slot(home) if record.network_slot is None else record.network_slot
    if slot is not None:
        with_node = msgspec.structs.replace(record, network_slot=slot, real=True)
        real_node.clean(platform_of(home, with_node, Programs(Path(record.engine))))
        network.remove_network(slot)
    left = [*processes.find_descendants(home, ours), *processes.find_detached(home), *find_marked(home)]
    processes.stop({each.pid: each for each in left}.values())
    return stopped


def stop_in_order(leaving: Iterable[Process]) -> None:
    """Stop the supervisor, so that it restarts nothing, then clients, then the API server, then etcd.

    The API server takes a minute to shut down while it has watchers, and does not end at all without etcd.
    """
    leaving = list(leaving)
    processes.stop(each for each in leaving if each.part == SUPERVISOR)
    processes.stop(each for each in leaving if each.part not in BASE_PARTS)
    for base_part in BASE_PARTS:
        processes.stop(each for each in leaving if each.part == base_part)


def foreign_process_problems(record: PlatformRecord) -> list[Problem]:
    """A problem for each recorded pid that belongs to another process now."""
    return [_foreign(each) for each in record.processes.values() if processes.state_of(each) is ProcessState.FOREIGN]


def _foreign(process: Process) -> Problem:
    return Problem(
        FOREIGN_PROCESS,
        f"{process.part} was recorded as pid {process.pid}, which belongs to another process now",
        note="that process was not touched, and the record was corrected",
        next=f"ps -fp {process.pid}, then run the same command again",
    )


def _record_or_empty(home: Home, progress: Progress) -> PlatformRecord:
    """An unreadable record is ignored: processes are found by their environment, and the slot by its claim."""
    try:
        return read_record(home) or PlatformRecord()
    except Refused as refused:
        progress.echo(refused.problems[0].what)
        return PlatformRecord()


def _purge(home: Home) -> None:
    shutil.rmtree(home.root, ignore_errors=True)
    if home.root.exists():
        # Not ignoring errors this time names the file that could not be removed.
        shutil.rmtree(home.root)
    network_slots.release_slot(home)
    home.lock.unlink(missing_ok=True)
