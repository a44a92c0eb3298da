"""What a platform is like right now: every part, measured and asked; rendered for a person or for a program."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from pincompute.engine import proc, processes
from pincompute.engine.home import Home, known
from pincompute.engine.nodes.shape import Simulated
from pincompute.engine.parts import Part, Ready, Socket, Web
from pincompute.engine.platform import Programs
from pincompute.engine.processes import Process, Standing
from pincompute.engine.readiness import answers
from pincompute.engine.record import Record, read
from pincompute.engine.settle import platform_of
from pincompute.engine.stages import stages


class Health(StrEnum):
    READY = "ready"
    SILENT = "silent"
    """It runs, and does not answer."""
    ENDED = "ended"
    FOREIGN = "foreign"
    """Somebody else's process has its pid."""
    ABSENT = "absent"
    """It was not started."""


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    health: Health
    pid: int | None = None
    age: float | None = None
    """Seconds."""
    memory: int | None = None
    """Bytes."""
    version: str = ""
    address: str = ""
    log: str = ""


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    real: bool
    simulated: Simulated


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `pin status -o json` prints. Fields may be added; those that are there stay."""

    name: str
    health: str
    """`ready`, `damaged` or `down`."""
    kubeconfig: str
    server: str
    http: str
    nodes: Nodes
    parts: list[PartStatus]

    @property
    def healthy(self) -> bool:
        return self.health == "ready"


def status_of(home: Home) -> Status:
    known(home)
    record = read(home) or Record()
    platform = platform_of(home, record, Programs(Path(record.engine)))
    # A platform that never came so far as to have ports has no parts either.
    wanted = [part for stage in stages(platform) for part in stage] if record.processes else []
    parts = [_part(part, record.processes.get(part.name), home) for part in wanted]
    return Status(
        name=home.name,
        health=_health(parts),
        kubeconfig=str(home.kubeconfig),
        server=platform.server if record.ports else "",
        http=f"http://NAME.PROJECT.localhost:{record.ports['http']}" if record.ports else "",
        nodes=Nodes(real=record.real, simulated=record.simulated),
        parts=parts,
    )


def _health(parts: list[PartStatus]) -> str:
    if parts and all(part.health is Health.READY for part in parts):
        return "ready"
    return "damaged" if any(part.health in (Health.READY, Health.SILENT) for part in parts) else "down"


def _part(part: Part, process: Process | None, home: Home) -> PartStatus:
    described = {
        "name": part.name,
        "version": part.version,
        "address": _address(part.ready),
        "log": str(processes.log_file(part.name, home)),
    }
    if process is None:
        return PartStatus(health=Health.ABSENT, **described)
    match processes.standing(process):
        case Standing.ENDED:
            return PartStatus(health=Health.ENDED, **described)
        case Standing.FOREIGN:
            return PartStatus(health=Health.FOREIGN, pid=process.pid, **described)
        case Standing.RUNNING:
            return PartStatus(
                health=Health.READY if answers(part.ready, home.certificates) else Health.SILENT,
                pid=process.pid,
                age=round((datetime.now(UTC) - processes.birth(process)).total_seconds(), 1),
                memory=proc.memory(process.pid),
                **described,
            )


def _address(ready: Ready) -> str:
    match ready:
        case Web(url=url):
            return "/".join(url.split("/")[:3])
        case Socket(path=None, address=address, port=port):
            return f"{address}:{port}"
        case Socket(path=path):
            return str(path)
        case _:
            return ""


def text(status: Status) -> str:
    """A table as wide as it must be."""
    header = ("PART", "HEALTH", "PID", "AGE", "MEMORY", "VERSION", "ADDRESS", "LOG")
    rows = [header, *(_row(part) for part in status.parts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*_head(status), "", *table] if status.parts else _head(status))


def _head(status: Status) -> list[str]:
    nodes = status.nodes
    size = nodes.simulated
    counted = [f"node-{status.name}"] if nodes.real else []
    if size.count:
        zones = f" in {size.zones} zones" if size.zones > 1 else ""
        counted.append(f"{size.count} simulated of {size.cpu} processors and {size.memory}{zones}")
    return [
        f"platform {status.name} is {status.health}",
        f"  kubeconfig  {status.kubeconfig}",
        f"  workloads   {status.http}",
        f"  nodes       {', '.join(counted) or 'none'}",
    ]


def _row(part: PartStatus) -> tuple[str, ...]:
    pid = "" if part.pid is None else str(part.pid)
    memory = "" if part.memory is None else f"{part.memory / (1 << 20):.0f} MiB"
    return part.name, part.health, pid, _age(part.age), memory, part.version, part.address, part.log


def _age(seconds: float | None) -> str:
    """In its largest unit: `42s`, `7m`, `3h`, `2d`."""
    if seconds is None:
        return ""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds:.0f}s"
