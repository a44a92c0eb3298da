"""PinterestDaemon: an infrastructure program that runs once on every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import FieldError, ValidationRule, label_errors
from pincompute.api.names import GPU_TYPE_LABEL
from pincompute.api.pod_template import mapping_at
from pincompute.api.serving import HealthCheck
from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import PauseReason, RestartCount, StrictStruct, count_or_percent_meta
from pincompute.api.workload import Tier, Workload, WorkloadSpec

_WHOLE_FLEET = 100


class Rollout(StrictStruct, frozen=True, kw_only=True):
    """Rollout of a new revision over the nodes, in waves. It stops when a wave is not healthy."""

    waves: Annotated[
        list[Annotated[int, Meta(ge=1, le=_WHOLE_FLEET)]],
        Meta(
            description="Percentage of nodes that have the new revision after each wave; [5, 25, 100] by default.",
            max_length=16,
        ),
    ] = msgspec.field(default_factory=lambda: [5, 25, 100])
    unavailable: Annotated[
        int | str,
        count_or_percent_meta(
            "Nodes that may be without a running replica at a time, such as 1 or 25%; 10% by default."
        ),
    ] = "10%"
    pause_seconds: Annotated[
        int,
        Meta(
            description="Seconds that a wave must be healthy before the next begins, such as 600; 60 by default.",
            ge=0,
            le=604_800,
        ),
    ] = 60
    paused: PauseReason = ""
    restarts: RestartCount = 0


class DaemonSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program and node selection of a daemon."""

    nodes: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels that a node must have, such as disk: fast; every node by default.", max_length=16),
    ] = {}
    every_node: Annotated[
        bool,
        Meta(description="Also run on tainted nodes, such as control planes; false by default."),
    ] = False
    port: Annotated[
        int,
        Meta(description="Port that the program listens on, such as 9100; none by default.", ge=0, le=65535),
    ] = 0
    health_check: Annotated[HealthCheck, Meta(description="Health check, if the program has a port.")] = HealthCheck()
    rollout: Annotated[Rollout, Meta(description="Rollout of a new revision over the nodes.")] = Rollout()
    tier: Annotated[Tier, Meta(description="Always reserved: a daemon is never preempted.")] = Tier.RESERVED

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        if self.tier is not Tier.RESERVED:
            yield FieldError(("tier",), "the tier of a daemon is always reserved", next="leave it out")
        if self.whole_node:
            yield FieldError(("wholeNode",), "a daemon cannot have a node for itself", next="leave it out")
        waves = list(self.rollout.waves)
        if waves != sorted(set(waves)) or waves[-1:] != [_WHOLE_FLEET]:
            what = f"waves are {waves}: percentages must increase and end with {_WHOLE_FLEET}"
            yield FieldError(("rollout", "waves"), what)
        if str(self.rollout.unavailable).rstrip("%").strip("0") == "":
            what = "unavailable is 0, so that no replica could be replaced"
            yield FieldError(("rollout", "unavailable"), what, next="unavailable: 10%")
        yield from label_errors(self.nodes, ("nodes",))
        if self.gpu_type and GPU_TYPE_LABEL in self.nodes:
            what = f"gpuType is set, and {GPU_TYPE_LABEL} in nodes"
            yield FieldError(("gpuType",), what, next="remove one of the two")
        for label in sorted(self.nodes.keys() & self._template_labels()):
            yield FieldError(
                ("nodes", label), f"{label} is set here and in the template's nodeSelector", next="remove one"
            )

    def _template_labels(self) -> set[str]:
        """Labels of the template's node selector."""
        return set(mapping_at(mapping_at(self.template, "spec"), "nodeSelector"))


class DaemonStatus(WorkloadStatus, frozen=True):
    """Progress of a daemon over the nodes."""

    former: Annotated[int, Meta(description="Nodes that still run an earlier revision, such as 7.")] = 0
    wave: Annotated[int, Meta(description="Wave in progress, such as 2; 0 if no rollout is running.")] = 0
    pinned_revision: Annotated[
        int, Meta(description="Revision that runs because a runtime pins it, such as 3; 0 if the file decides.")
    ] = 0
    pinned_by: Annotated[int, Meta(description="Runtime that pins it, such as 42; 0 for none.")] = 0
    recorded: Annotated[
        list[int], Meta(description="Revisions that a runtime can pin, such as [2, 3].", max_length=1024)
    ] = []


class PinterestDaemon(Workload, frozen=True, kw_only=True, rename=None):
    """An infrastructure program that runs once on every node."""

    KIND_NAME: ClassVar[str] = "a daemon"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("DaemonSet", "ConfigMap")
    """Its revisions are planned from their records."""
    NOT_SCALABLE: ClassVar[tuple[str, str]] = (
        "a daemon runs once on each node",
        "change nodes: in its file, then: pin deploy FILE",
    )
    BY_ADMINISTRATORS: ClassVar[bool] = True
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptd",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Nodes", "integer", ".status.progress.wanted"),
        ("Ready", "integer", ".status.readyReplicas"),
        ("Former", "integer", ".status.former"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *Workload.VALIDATION_RULES,
        ValidationRule(
            "!has(self.spec.tier) || self.spec.tier == 'reserved'",
            "spec.tier must be reserved or left out: a daemon is never preempted and counts in no tier's quota",
        ),
        ValidationRule(
            "!has(self.spec.wholeNode) || !self.spec.wholeNode",
            "spec.wholeNode cannot be used: a daemon shares its node",
        ),
    )

    spec: DaemonSpec
    status: DaemonStatus = DaemonStatus()
    kind: str = "PinterestDaemon"
