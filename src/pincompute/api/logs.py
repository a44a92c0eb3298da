"""Log protocol: queries, lines, markers between lines, and the container runs that the log store keeps."""

from __future__ import annotations

from typing import Literal

from pincompute.api.structs import LenientStruct

DEFAULT_TAIL_LINES = 100
"""Default number of lines of each replica."""
HEARTBEAT_INTERVAL_S = 10.0
"""Interval in which the store sends a heartbeat on an open stream."""


class LogReplicas(LenientStruct, frozen=True, omit_defaults=True, tag="replicas", tag_field="is"):
    """Replicas of the lines that follow. Sent first, and again when a replica is added."""

    replicas: list[str]


class LogLine(LenientStruct, frozen=True, omit_defaults=True, tag="line", tag_field="is"):
    """One line printed by a replica."""

    replica: str
    """Short name: abcde for hello-5d8f7c9b7-abcde, 12 for resize/12."""
    time: str
    text: str
    container: str = ""
    """Empty for the main container."""


class LogMarker(LenientStruct, frozen=True, omit_defaults=True, tag="mark", tag_field="is"):
    """An event of a replica between its lines, such as a restart. `replica` is empty if it concerns all replicas."""

    replica: str
    time: str
    text: str


LogItem = LogReplicas | LogLine | LogMarker


RunSelector = Literal["", "ended", "youngest"]


class LogQuery(LenientStruct, frozen=True, kw_only=True):
    """Selects log lines."""

    replica: str = ""
    """Replica or task; empty for all."""
    container: str = ""
    """Container name, or a file of the log volume; empty for the main container."""
    include_deleted: bool = False
    """Include replicas with deleted pods, even if others are running."""
    previous: bool = False
    """Only the container run before the current one."""
    since: int = 0
    """Nanoseconds since the epoch; 0 for no limit."""
    tail: int = DEFAULT_TAIL_LINES
    follow: bool = False
    select_run: RunSelector = ""
    """Restrict to one container run: the last that failed (`ended`) or the newest (`youngest`)."""


class ContainerExit(LenientStruct, frozen=True):
    """Termination of a container run."""

    reason: str = ""
    """Kubernetes' termination reason, such as OOMKilled."""
    exit_code: int = 0
    at: str = ""


class ContainerRun(LenientStruct, frozen=True, kw_only=True):
    """One run of a container between restarts, or one file of a pod's log volume, in the log store."""

    pod: str
    uid: str
    container: str
    restart: int = 0
    labels: dict[str, str] = {}
    """Those pod labels that identify the replica."""
    main_container: str = ""
    """First container of the pod."""
    created: str = ""
    pod_deleted_at: str = ""
    """Deletion time of the pod; empty while it exists."""
    end: ContainerExit | None = None

    @property
    def is_volume_file(self) -> bool:
        """A container name has no dot, so a name with a dot is a file of the log volume."""
        return "." in self.container


class LogEntry(LenientStruct, frozen=True):
    """One line in a response of the log store."""

    time: str
    text: str


class LogBatch(LenientStruct, frozen=True):
    """Lines that the log store has just received."""

    container_run: ContainerRun
    entries: list[LogEntry]
    problem: str = ""
    """Why no further batch follows; then it has no lines."""
