"""What is remembered of a platform between two commands: one file, written whole or not at all."""

from __future__ import annotations

import msgspec

from pincompute.base.certificates import write_private
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import RECORD_INVALID
from pincompute.engine.home import Home
from pincompute.engine.nodes.shape import Simulated
from pincompute.engine.processes import Process


class Record(msgspec.Struct, frozen=True, kw_only=True):
    index: int | None = None
    real: bool = False
    only_simulated: bool = False
    """A real node is not wanted, even if it could be had."""
    simulated: Simulated = Simulated()
    bare: bool = False
    """Kubernetes and its nodes alone: what is ours comes by `pin install`, or not at all."""
    runtime: bool = False
    """Workloads have the parts that come with the platform."""
    engine: str = ""
    """The folder with the programs that it was started with last."""
    neighbours: dict[str, str] = {}
    """Those that were asked for, each with the folder of the programs that it was started with last."""
    ports: dict[str, int] = {}
    processes: dict[str, Process] = {}


def read(home: Home) -> Record | None:
    """What was written last; nothing where there is no platform."""
    file = home.root / "record.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise Refused(
            Problem(
                RECORD_INVALID,
                f"the record of platform '{home.name}' cannot be read: {error}",
                Where(file=str(file)),
                note="nothing was changed; `pin down` ends everything that belongs to it even so",
                next=f"pin down --name {home.name}",
            )
        ) from error


def write(home: Home, record: Record) -> None:
    write_private(home.root / "record.json", msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
