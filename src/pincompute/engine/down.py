"""Takes a platform down: ends just what was started, in the order that lets each part end in peace."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import FOREIGN_PROCESS
from pincompute.engine import places, processes
from pincompute.engine.control_plane import API_SERVER, ETCD
from pincompute.engine.home import Home, known
from pincompute.engine.lock import held
from pincompute.engine.nodes import network, real_node
from pincompute.engine.platform import Programs
from pincompute.engine.processes import Process, Standing, marked
from pincompute.engine.progress import Progress
from pincompute.engine.record import Record, read, write
from pincompute.engine.settle import platform_of

GROUND = (API_SERVER, ETCD)
"""What all others stand on, in the order in which it ends."""


def down(home: Home, progress: Progress, *, purge: bool) -> None:
    if not marked(home):
        known(home)
    with held(home.lock, f"pin down --name {home.name}", progress.say):
        record = _remembered(home, progress)
        foreign = foreigners(record)
        ended = take_down(home, record)
        if purge:
            _forget(home)
        else:
            write(home, msgspec.structs.replace(record, processes={}))
    progress.say(f"platform {home.name} is {'gone' if purge else 'down'}; {ended} processes were ended")
    if foreign:
        raise Refused(*foreign)


def take_down(home: Home, record: Record) -> int:
    """Processes, then what the real node left, then the network; tell how many processes there were."""
    recorded = record.processes.values()
    running = {each.pid for each in recorded if processes.running(each)}
    ours = [*recorded, *(each for each in marked(home) if each.pid not in running)]
    ended = sum(processes.running(each) for each in ours)
    end(each for each in ours if each.leader)
    place = places.owned(home) if record.index is None else record.index
    if place is not None:
        seen = msgspec.structs.replace(record, index=place, real=True)
        real_node.clean(platform_of(home, seen, Programs(Path(record.engine))))
        network.remove(place)
    left = [*processes.heirs(home, ours), *marked(home)]
    processes.stop({each.pid: each for each in left}.values())
    return ended


def end(leaving: Iterable[Process]) -> None:
    """Clients first: with watchers alive the API server takes a minute to end, and without etcd it never does."""
    leaving = list(leaving)
    processes.stop(each for each in leaving if each.part not in GROUND)
    for ground in GROUND:
        processes.stop(each for each in leaving if each.part == ground)


def foreigners(record: Record) -> list[Problem]:
    """Who stands where one of ours was recorded."""
    return [_foreign(each) for each in record.processes.values() if processes.standing(each) is Standing.FOREIGN]


def _foreign(process: Process) -> Problem:
    return Problem(
        FOREIGN_PROCESS,
        f"{process.part} was recorded as pid {process.pid}, which is now somebody else's",
        note="it was left alone, and the record was corrected",
        next=f"ps -fp {process.pid}, then the same command again",
    )


def _remembered(home: Home, progress: Progress) -> Record:
    """What cannot be read is done without: every process carries its platform's name, and its place is known."""
    try:
        return read(home) or Record()
    except Refused as refused:
        progress.say(refused.problems[0].what)
        return Record()


def _forget(home: Home) -> None:
    shutil.rmtree(home.root, ignore_errors=True)
    if home.root.exists():
        # What could not be removed is named, by trying once more.
        shutil.rmtree(home.root)
    places.release(home)
    home.lock.unlink()
