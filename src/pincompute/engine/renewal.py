"""Renews the certificates of a running platform, and restarts the parts that use them one by one.

The supervisor runs this module once an hour, as a process of its own: it needs far more memory than the supervisor.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from pincompute.base import logging as logs
from pincompute.base.certificate_authority import Authority
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Refused
from pincompute.base.progress import Progress
from pincompute.engine import own_services, processes
from pincompute.engine.converge import Converger, Stages
from pincompute.engine.file_lock import try_exclusive_lock
from pincompute.engine.home import Home
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.record import PlatformRecord, read_record
from pincompute.engine.stages import platform_stages, prepare_parts
from pincompute.engine.supervisor import SUPERVISOR, write_descriptions
from pincompute.engine.up_options import platform_of
from pincompute.objects.times import format_time

_CA = "ca"

_log = structlog.get_logger()


class DueCertificates(NamedTuple):
    """Certificates in the last third of their lifetime, as paths below the folder of certificates."""

    authorities: tuple[str, ...]
    issued: tuple[str, ...]


class RenewalActions(NamedTuple):
    """The effects of a renewal, which tests replace."""

    prepare: Callable[[Platform], None]
    """Issue the certificates that are due, and write the files that contain them."""
    stages: Callable[[Platform], Stages]
    code: Callable[[], str]
    """Digest of the code on disk."""


def _prepare(platform: Platform) -> None:
    prepare_parts(platform, Progress())


SYSTEM_ACTIONS = RenewalActions(_prepare, platform_stages, own_services.code_digest)


def find_due(platform: Platform) -> DueCertificates:
    """Everything that is due, except the certificates of services' hosts: the ingress renews those itself."""
    folder, hosts = platform.home.certificates, own_services.web_authority(platform).folder
    clock = platform.authority.clock
    files = sorted(folder.rglob("*.crt"))
    due = [each for each in files if Authority(each.parent, clock).due_expiry(each.stem) is not None]
    return DueCertificates(
        tuple(str(each.relative_to(folder)) for each in due if each.stem == _CA),
        tuple(str(each.relative_to(folder)) for each in due if each.stem != _CA and each.parent != hosts),
    )


def obstacle(due: DueCertificates, *, code_changed: bool) -> str:
    """Why only `pin up` can renew these certificates; empty if the supervisor can."""
    if due.authorities:
        # The clients of an authority trust nothing that its successor signs, so all parts must stop first.
        return f"an authority must be replaced: {', '.join(due.authorities)}"
    if due.issued and code_changed:
        # A restarted part would be a newer version than its neighbours.
        return "PinCompute was updated after the last pin up"
    return ""


def restart_plan(parts: Iterable[Part], record: PlatformRecord, home: Home) -> list[Part]:
    """The running parts that loaded an older certificate, in the order in which they are restarted.

    That is the order of a start: etcd, the API server, then their clients, so each part finds what it depends on ready
    and restarted already. No order is needed for trust, as the former certificates are valid for months.
    """
    running = record.processes
    return [
        each
        for each in parts
        if each.name != SUPERVISOR
        and each.name in running
        and processes.has_old_certificates(running[each.name], each, home)
    ]


def renew(home: Home, clock: Clock, actions: RenewalActions = SYSTEM_ACTIONS) -> list[str]:
    """Renew what is due and restart the parts that use it; returns their names.

    Also restarts the parts that an interrupted renewal left with their former certificates. While a command holds the
    lock of the platform, nothing is done.
    """
    with try_exclusive_lock(home.lock, "renewing certificates") as held:
        record = read_record(home) if held and home.root.exists() else None
        if record is None or not record.processes:
            return []
        return _renew(home, clock, record, actions)


def _renew(home: Home, clock: Clock, record: PlatformRecord, actions: RenewalActions) -> list[str]:
    platform = platform_of(home, record, Programs(Path(record.engine)))
    platform = platform._replace(authority=Authority(home.certificates, clock))
    due = find_due(platform)
    converger = Converger(home, record, lambda line: _log.warning("part restarted", message=line))
    problem = obstacle(due, code_changed=os.environ.get(own_services.CODE_VARIABLE, "") != actions.code())
    if problem:
        _log.error("certificates not renewed", why=problem, certificates=[*due.authorities, *due.issued])
        converger.record_renewal(record.certificates_renewed, problem)
        return []
    if due.issued:
        actions.prepare(platform)
        _log.warning("certificates renewed", certificates=due.issued)
    parts = list(chain.from_iterable(actions.stages(platform)))
    renewed_at = format_time(clock.now()) if due.issued else record.certificates_renewed
    restarted = []
    # The registry's description contains a digest of its certificates.
    write_descriptions(home, parts)
    try:
        for part in restart_plan(parts, record, home):
            converger.restart(part)
            _log.warning("part restarted", part=part.name, why="certificates renewed")
            restarted.append(part.name)
    except Refused as refused:
        # The others keep their former certificates, which are valid for months, until the next attempt.
        problem = refused.problems[0].what
        _log.error("renewal stopped", error=problem)
    if restarted or problem or due.issued or record.renewal_problem:
        converger.record_renewal(renewed_at, problem)
    return restarted


def main() -> None:
    logs.configure(process=SUPERVISOR)
    root = Path(sys.argv[1])
    try:
        renew(Home(root.name, root), SystemClock())
    except (Refused, OSError, msgspec.DecodeError) as error:
        _log.error("renewal failed", error=str(error))


if __name__ == "__main__":
    main()
