"""PinterestDaemon: a program of the infrastructure team that runs once on every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.noun import Fault, Rule, label_faults
from pincompute.api.serving import HealthCheck
from pincompute.api.status import Status
from pincompute.api.wire import Paused, Restarts, Strict, share
from pincompute.api.workload import Tier, Workload, WorkloadSpec

_ALL = 100


class Rollout(Strict, frozen=True, kw_only=True):
    """How a new revision comes to the nodes: wave by wave, and no further than all goes well."""

    waves: Annotated[
        list[Annotated[int, Meta(ge=1, le=_ALL)]],
        Meta(description="Percent of the nodes that have it after each wave; [5, 25, 100] by default.", max_length=16),
    ] = msgspec.field(default_factory=lambda: [5, 25, 100])
    unavailable: Annotated[
        int | str, share("Nodes that may be without it at a time, such as 1 or 25%; 10% by default.")
    ] = "10%"
    pause_seconds: Annotated[
        int,
        Meta(
            description="Seconds that it must run on the nodes of a wave before the next, such as 600; 60 by default.",
            ge=0,
            le=604_800,
        ),
    ] = 60
    paused: Paused = ""
    restarts: Restarts = 0


class DaemonSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What runs, and on which nodes."""

    nodes: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels of the nodes that have it, such as disk: fast; every node by default.", max_length=16),
    ] = {}
    every_node: Annotated[
        bool,
        Meta(description="Also on nodes that are kept free of other work, such as control planes; false by default."),
    ] = False
    port: Annotated[
        int,
        Meta(description="The port that the program listens on, such as 9100; none by default.", ge=0, le=65535),
    ] = 0
    health_check: Annotated[HealthCheck, Meta(description="When it is well, where it has a port.")] = HealthCheck()
    rollout: Annotated[Rollout, Meta(description="How a new revision comes to the nodes.")] = Rollout()
    tier: Annotated[Tier, Meta(description="Always reserved: what every node needs is never ended to make room.")] = (
        Tier.RESERVED
    )

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        if self.tier is not Tier.RESERVED:
            yield Fault(
                ("tier",), "a daemon goes before every tier, and counts in the quota of none", next="leave it out"
            )
        if self.whole_node:
            yield Fault(("wholeNode",), "a daemon shares its node with all other work", next="leave it out")
        waves = list(self.rollout.waves)
        if waves != sorted(set(waves)) or waves[-1:] != [_ALL]:
            what = f"the waves are {waves}: each must be larger than the one before, and the last {_ALL}"
            yield Fault(("rollout", "waves"), what)
        if str(self.rollout.unavailable).rstrip("%").strip("0") == "":
            what = "unavailable is 0, so that no copy could ever be replaced"
            yield Fault(("rollout", "unavailable"), what, next="unavailable: 10%")
        yield from label_faults(self.nodes, ("nodes",))
        for label in sorted(self.nodes.keys() & _selected(self.template)):
            yield Fault(
                ("nodes", label), f"{label} stands here and in the template's nodeSelector", next="leave one out"
            )


def _selected(template: object) -> set[str]:
    """Templates come from people: what should be a set of fields may be anything."""
    pod = template.get("spec") if isinstance(template, dict) else None
    selector = pod.get("nodeSelector") if isinstance(pod, dict) else None
    return set(selector) if isinstance(selector, dict) else set()


class DaemonStatus(Status, frozen=True):
    """On how many nodes it is."""

    former: Annotated[int, Meta(description="Nodes that have a former revision, such as 7.")] = 0
    wave: Annotated[int, Meta(description="The wave that is on its way, such as 2; 0 when none is.")] = 0


class PinterestDaemon(Workload, frozen=True, kw_only=True, rename=None):
    """A program of the infrastructure team that runs once on every node."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptd",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Nodes", "integer", ".status.progress.wanted"),
        ("Ready", "integer", ".status.progress.ready"),
        ("Former", "integer", ".status.former"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        *Workload.RULES,
        Rule(
            "!has(self.spec.tier) || self.spec.tier == 'reserved'",
            "spec.tier: a daemon goes before every tier, and counts in the quota of none",
        ),
        Rule("!has(self.spec.wholeNode) || !self.spec.wholeNode", "spec.wholeNode: a daemon shares its node"),
    )

    spec: DaemonSpec
    status: DaemonStatus = DaemonStatus()
    kind: str = "PinterestDaemon"
