"""`pin status`: probes every part of a platform and renders the result as text or JSON."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from pincompute.engine import control_plane, metrics_token, own_services, proc, processes
from pincompute.engine.home import Home, require_platform
from pincompute.engine.nodes.simulated_spec import SimulatedNodes
from pincompute.engine.parts import HttpProbe, Part, ReadinessProbe, SocketProbe
from pincompute.engine.platform import Programs
from pincompute.engine.processes import Process, ProcessState
from pincompute.engine.prometheus import server as prometheus
from pincompute.engine.readiness import is_ready
from pincompute.engine.record import PlatformRecord, read_record
from pincompute.engine.stages import platform_stages
from pincompute.engine.supervisor import SUPERVISOR
from pincompute.engine.up_options import platform_of
from pincompute.objects.times import format_time


class Health(StrEnum):
    READY = "ready"
    SILENT = "silent"
    """The process runs; its readiness probe fails."""
    ENDED = "ended"
    FOREIGN = "foreign"
    """The recorded pid belongs to another process."""
    ABSENT = "absent"
    """Not started."""


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    health: Health
    pid: int | None = None
    age_s: float | None = msgspec.field(name="age", default=None)
    """Seconds since the start of the process."""
    memory_bytes: int | None = msgspec.field(name="memory", default=None)
    """Proportional set size."""
    restarts: int = 0
    """Restarts by the supervisor since the platform was started."""
    version: str = ""
    address: str = ""
    log: str = ""


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    real: bool
    simulated: SimulatedNodes


class PlatformStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `pin status -o json`. Fields may be added, never removed or renamed."""

    name: str
    health: str
    """`ready`, `damaged` or `down`."""
    kubeconfig: str
    server: str
    http: str
    metrics_header: str = ""
    """File with the header that the metrics and the pass history require; empty if the platform has no operator."""
    metrics: dict[str, str] = {}
    """URL of the metrics of each part that requires this header."""
    prometheus: list[str] = []
    """URL of Prometheus, after the options of curl with the files that it requires; empty without this add-on."""
    nodes: Nodes
    parts: list[PartStatus]
    certificates_expire: str = ""
    """When the first certificate expires, if it is due for renewal; empty if none is due."""
    certificates_renewed: str = ""
    """When certificates were last renewed while the platform ran."""
    renewal_problem: str = ""
    """Why the supervisor cannot renew certificates or restart the parts that use them, so that `pin up` must."""

    @property
    def healthy(self) -> bool:
        return self.health == "ready"


def platform_status(home: Home) -> PlatformStatus:
    require_platform(home)
    record = read_record(home) or PlatformRecord()
    platform = platform_of(home, record, Programs(Path(record.engine)))
    # Without recorded processes the platform was never started completely and may have no ports.
    wanted = [part for stage in platform_stages(platform) for part in stage] if record.processes else []
    parts = [
        msgspec.structs.replace(
            _part(part, record.processes.get(part.name), home), restarts=record.restarts.get(part.name, 0)
        )
        for part in wanted
    ]
    return PlatformStatus(
        name=home.name,
        health=_health(parts),
        kubeconfig=str(home.kubeconfig),
        server=platform.server if record.ports else "",
        http=f"http://NAME.PROJECT.localhost:{record.ports['http']}" if record.ports else "",
        metrics_header="" if platform.bare else str(metrics_token.header_file(home)),
        metrics=own_services.metrics_urls(platform) if record.processes else {},
        prometheus=[*prometheus.curl_arguments(platform), prometheus.address(platform)]
        if prometheus.NAME in platform.addons
        else [],
        nodes=Nodes(real=record.real, simulated=record.simulated),
        parts=parts,
        certificates_expire=format_time(expiry) if (expiry := control_plane.certificates_expiry(platform)) else "",
        certificates_renewed=record.certificates_renewed,
        renewal_problem=record.renewal_problem,
    )


def _health(parts: list[PartStatus]) -> str:
    if parts and all(part.health is Health.READY for part in parts):
        return "ready"
    return "damaged" if any(part.health in (Health.READY, Health.SILENT) for part in parts) else "down"


def _part(part: Part, process: Process | None, home: Home) -> PartStatus:
    described = {
        "name": part.name,
        "version": part.version,
        "address": _address(part.probe),
        "log": str(processes.log_file(part.name, home)),
    }
    if process is None:
        return PartStatus(health=Health.ABSENT, **described)
    match processes.state_of(process):
        case ProcessState.ENDED:
            return PartStatus(health=Health.ENDED, **described)
        case ProcessState.FOREIGN:
            return PartStatus(health=Health.FOREIGN, pid=process.pid, **described)
        case ProcessState.RUNNING:
            return PartStatus(
                health=Health.READY if is_ready(part.probe, home.certificates) else Health.SILENT,
                pid=process.pid,
                age_s=round((datetime.now(UTC) - processes.start_time(process)).total_seconds(), 1),
                memory_bytes=proc.memory_bytes(process.pid),
                **described,
            )


def _address(ready: ReadinessProbe) -> str:
    match ready:
        case HttpProbe(url=url):
            return "/".join(url.split("/")[:3])
        case SocketProbe(path=None, address=address, port=port):
            return f"{address}:{port}"
        case SocketProbe(path=path):
            return str(path)
        case _:
            return ""


def render_status(status: PlatformStatus, *, wide: bool = False) -> str:
    """A header and a table of the parts, which fits 80 columns unless it is wide."""
    header = ("PART", "HEALTH", "RESTARTS", "AGE", "MEMORY", "VERSION")
    header = (*header, "PID", "ADDRESS", "LOG") if wide else header
    rows = [header, *(_table_row(part)[: len(header)] for part in status.parts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*_header_lines(status), "", *table] if status.parts else _header_lines(status))


def _header_lines(status: PlatformStatus) -> list[str]:
    nodes = status.nodes
    size = nodes.simulated
    counted = [f"node-{status.name}"] if nodes.real else []
    if size.count:
        zones = f", in {size.zones} zones" if size.zones > 1 else ""
        counted.append(f"{size.count} simulated, each {size.cpu} CPUs, {size.memory}{zones}")
    return [
        f"platform {status.name}: {status.health}",
        f"  kubeconfig  {status.kubeconfig}",
        f"  workloads   {status.http}",
        f"  nodes       {', '.join(counted) or 'none'}",
        *(
            f"  logs        {folder}/PART.log"
            for folder in {str(Path(part.log).parent) for part in status.parts if part.log}
        ),
        *_metrics_lines(status),
        *([f"  prometheus  curl {shlex.join(status.prometheus)}/api/v1/alerts"] if status.prometheus else []),
        *_renewal_lines(status),
    ]


def _renewal_lines(status: PlatformStatus) -> list[str]:
    """What becomes of the certificates, if they are due, were renewed while the platform ran, or cannot be."""
    due, supervisor = status.certificates_expire, next((each for each in status.parts if each.name == SUPERVISOR), None)
    if status.renewal_problem or (due and (supervisor is None or supervisor.health is not Health.READY)):
        why = status.renewal_problem or "the supervisor does not run"
        before = f", before certificates expire at {due}" if due else ""
        return [f"  renewal     pin up{before}: {why}"]
    if due:
        return [f"  renewal     within the hour, as certificates expire at {due}"]
    return [f"  renewal     certificates renewed at {done}"] if (done := status.certificates_renewed) else []


def _metrics_lines(status: PlatformStatus) -> list[str]:
    """The command that prints the operator's metrics, and the addresses of the metrics of other parts."""
    addresses = [part.address for part in status.parts if part.name == "operator"]
    header = shlex.quote(f"@{status.metrics_header}")
    lines = [f"  metrics     curl -H {header} {each}/metrics" for each in addresses if status.metrics_header]
    return [
        *lines,
        *(f"              {each}" for each in status.metrics.values() if each.split("/metrics")[0] not in addresses),
    ]


def _table_row(part: PartStatus) -> tuple[str, ...]:
    pid = "" if part.pid is None else str(part.pid)
    memory = "" if part.memory_bytes is None else f"{part.memory_bytes / (1 << 20):.0f} MiB"
    age = _format_age(part.age_s)
    return part.name, part.health, str(part.restarts), age, memory, part.version, pid, part.address, part.log


def _format_age(seconds: float | None) -> str:
    """Duration in its largest unit: `42s`, `7m`, `3h`, `2d`."""
    if seconds is None:
        return ""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds:.0f}s"
