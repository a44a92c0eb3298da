"""Persistent state of a platform between commands: `record.json`, written atomically."""

from __future__ import annotations

import msgspec

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import RECORD_INVALID
from pincompute.base.secure_files import write_private_file
from pincompute.engine.home import Home
from pincompute.engine.nodes.simulated_spec import SimulatedNodes
from pincompute.engine.processes import Process


class PlatformRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Options and processes of a platform."""

    network_slot: int | None = msgspec.field(default=None, name="index")
    real: bool = False
    only_simulated: bool = False
    """Set by `--simulated`: no real node, even on a machine that could run one."""
    simulated: SimulatedNodes = SimulatedNodes()
    bare: bool = False
    """Kubernetes and its nodes only, without PinCompute."""
    runtime: bool = False
    """The bundled runtimes are created."""
    engine: str = ""
    """Folder of the programs of the last start."""
    addons: dict[str, str] = msgspec.field(default_factory=dict, name="neighbours")
    """Enabled add-ons, each with the folder of its programs at the last start."""
    zookeeper: str = ""
    """Addresses of an ensemble that the platform does not run; empty for none."""
    ports: dict[str, int] = {}
    processes: dict[str, Process] = {}
    restarts: dict[str, int] = {}
    """Restarts by the supervisor since the platform was started, by part."""
    certificates_renewed: str = ""
    """When certificates were last renewed while the platform ran."""
    renewal_problem: str = ""
    """Why the supervisor's last attempt failed; empty after a successful one."""
    wide_services: bool = False
    """Whether the range of Services is a /20; a platform of 0.2 or before keeps its /24."""
    secrets_encrypted: bool = False
    """Whether every Secret has been rewritten since encryption at rest was enabled."""


def read_record(home: Home) -> PlatformRecord | None:
    """The recorded state, None if there is no platform."""
    file = home.root / "record.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=PlatformRecord)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise Refused(
            Problem(
                RECORD_INVALID,
                f"the record of platform '{home.name}' is unreadable: {error}",
                Where(file=str(file)),
                note="nothing was changed; `pin down` works without the record",
                next=f"pin down --name {home.name}",
            )
        ) from error


def write_record(home: Home, record: PlatformRecord) -> None:
    write_private_file(home.root / "record.json", msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
