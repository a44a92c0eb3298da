"""Revisions of daemons that a runtime pins. All daemons follow the runtime in force, before its first wave begins.

The runtime in force for daemons is the next one as soon as its roll has begun, and the current one otherwise. So a roll
that is stopped puts the former revisions back; nothing is stored for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.runtime import DaemonPin, Runtime
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons.runtimes import PINNED_REVISION_MISSING
from pincompute.planning.runtimes.selection import Runtimes


class RuntimePin(NamedTuple):
    """The revision of a daemon that the runtime in force pins."""

    revision: int
    runtime: int


def pin_of(owner: Workload, runtimes: Runtimes) -> RuntimePin | None:
    """The pin of a daemon; None if the runtime in force does not list it, so that its own file decides."""
    number = runtimes.next if runtimes.next and runtimes.cursor else runtimes.current
    runtime = runtimes.by_number.get(number)
    if runtime is None or not isinstance(owner, PinterestDaemon):
        return None
    revision = next((each.revision for each in runtime.spec.daemon_pins if each.daemon == owner.metadata.key), 0)
    return RuntimePin(revision, number) if revision else None


def pinned_revisions(owner: Workload, runtimes: Runtimes) -> frozenset[int]:
    """Revisions of a daemon that any runtime pins: their records are retained, as a roll may lead to each of them."""
    pins = (pin for runtime in runtimes.by_number.values() for pin in runtime.spec.daemon_pins)
    is_daemon = isinstance(owner, PinterestDaemon)
    return frozenset(each.revision for each in pins if is_daemon and each.daemon == owner.metadata.key)


def missing_pin_problems(runtime: Runtime, workloads: Iterable[Workload]) -> tuple[Problem, ...]:
    """Problems of pins whose daemon does not exist, or has no record of the revision.

    The records of a daemon that comes from a file, or was not reconciled yet, are unknown.
    """
    pins = runtime.spec.daemon_pins
    if not pins:
        return ()
    daemons = {each.metadata.key: each for each in workloads if isinstance(each, PinterestDaemon)}
    return tuple(_missing_pin_problems(runtime, pins, daemons))


def _missing_pin_problems(
    runtime: Runtime, pins: Iterable[DaemonPin], daemons: dict[str, PinterestDaemon]
) -> Iterator[Problem]:
    where = Where(object=f"Runtime/{runtime.number}", field="spec.daemons")
    for pin in pins:
        what = f"runtime {runtime.number} pins {pin}"
        daemon = daemons.get(pin.daemon)
        if daemon is None:
            what = f"{what}, and there is no daemon {pin.daemon}"
            note = f"the daemons are {', '.join(sorted(daemons))}" if daemons else "there are no daemons"
            yield Problem(PINNED_REVISION_MISSING, what, where, note, "create the next runtime with one of these")
        elif daemon.status.recorded and pin.revision not in daemon.status.recorded:
            recorded = ", ".join(f"@{each}" for each in daemon.status.recorded) or "none"
            what = f"{what}, a revision without a record"
            project, _, name = pin.daemon.partition("/")
            next_ = f"pin show {name} --project {project}, and create the next runtime"
            yield Problem(PINNED_REVISION_MISSING, what, where, f"recorded revisions: {recorded}", next_)
