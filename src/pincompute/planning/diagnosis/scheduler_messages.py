"""Parser for the scheduler's message `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had …`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pincompute.planning.diagnosis.excerpts import join_with_and
from pincompute.planning.pods.pod import GPU_RESOURCE

_COUNTS = re.compile(r"^0/(?P<nodes>\d+) nodes are available: (?P<reasons>.*)", re.DOTALL)
_SUFFIX = re.compile(r"\.?\s+(?:preemption: |no new claims to deallocate|not found$).*", re.DOTALL)
"""The result of the attempted preemption, which repeats the reasons."""
_SEGMENT = re.compile(r"^(?P<count>\d+) (?P<reason>.+)$", re.DOTALL)
_TAINT = re.compile(r"untolerated taint(?:\(s\))?(?: \{(?P<key>[^:}]*)(?:: ?(?P<value>[^}]*))?\})?")
_INSUFFICIENT = re.compile(r"^Insufficient (?P<resource>\S+)$")

AFFINITY_OBSTACLE = "run no pod that its affinity requires"
SELECTOR_OBSTACLE = "do not match its node selector or affinity"
_NODE_TAINT_PREFIX = "node.kubernetes.io/"
_NODE_TAINTS = {
    "not-ready": "are not ready",
    "unreachable": "are unreachable",
    "unschedulable": "are cordoned",
    "memory-pressure": "have memory pressure",
    "disk-pressure": "have disk pressure",
    "pid-pressure": "have PID pressure",
    "network-unavailable": "have no network yet",
}
"""Taints that Kubernetes itself sets on nodes, by their name without the prefix."""
_STORAGE_REASONS = (
    ("PersistentVolume's node affinity", "cannot reach its volume"),
    ("no available volume zone", "cannot reach its volume"),
    ("non-existent pv(s)", "cannot reach its volume, which does not exist"),
    ("ReadWriteOncePod", "cannot reach its volume, which another pod uses"),
    ("available persistent volumes to bind", "have no volume for its claim"),
    ("enough free storage", "have too little storage left"),
    ("max volume count", "have the maximum number of volumes"),
)
_OTHER_REASONS = (
    ("node affinity/selector", SELECTOR_OBSTACLE),
    ("scheduler-enforced node affinity", SELECTOR_OBSTACLE),
    ("requested node name", "do not have the node name that it requests"),
    ("existing pods anti-affinity", "run pods that exclude it by anti-affinity"),
    ("pod anti-affinity", "run pods that it excludes by anti-affinity"),
    ("pod affinity", AFFINITY_OBSTACLE),
    ("topology spread", "violate its topology spread constraint"),
    ("free ports", "have its host port in use"),
    ("were unschedulable", "are cordoned"),
    ("unknown conditions", "are not ready"),
)
"""Phrases of the scheduler, the more specific first, and the text for several nodes."""


class NodeObstacle(NamedTuple):
    """One reason for which some nodes do not accept the pod."""

    count: int
    text: str
    """Verb phrase for several nodes."""
    scarce_resource: str = ""
    """Resource of which the nodes have too little, such as cpu."""
    storage: bool = False

    def __str__(self) -> str:
        return _singular(self.text) if self.count == 1 else self.text


class SchedulerVerdict(NamedTuple):
    """All reasons for which no node accepts the pod."""

    node_count: int
    obstacles: tuple[NodeObstacle, ...]

    def __str__(self) -> str:
        """Reasons that hold for all nodes, if there are any: they alone keep the pod pending. Else all reasons."""
        if self.node_count == 1:
            return f"the only node {join_with_and(str(each) for each in self.obstacles)}"
        everywhere = [str(each) for each in self.obstacles if each.count == self.node_count]
        if everywhere:
            return f"all {self.node_count} nodes {join_with_and(everywhere)}"
        return f"of {self.node_count} nodes, {join_with_and(f'{each.count} {each}' for each in self.obstacles)}"


@lru_cache(maxsize=64)
def parse_scheduler_message(message: str) -> SchedulerVerdict | None:
    """The parsed message, or None if any part of it is unknown: an incomplete list would mislead.

    The pods of a workload have equal messages.
    """
    found = _COUNTS.match(message)
    if not found:
        return None
    obstacles = [_parse_obstacle(segment) for segment in unschedulable_reasons(message).split(", ")]
    known = sorted((each for each in obstacles if each is not None), key=lambda each: (-each.count, each.text))
    return SchedulerVerdict(int(found["nodes"]), tuple(known)) if len(known) == len(obstacles) else None


def unschedulable_reasons(message: str) -> str:
    """The reasons without the number of nodes before them and the preemption result after them."""
    found = _COUNTS.match(message)
    return _SUFFIX.sub("", found["reasons"] if found else message).rstrip(".").strip()


def _parse_obstacle(segment: str) -> NodeObstacle | None:
    found = _SEGMENT.match(segment)
    if not found:
        return None
    count, reason = int(found["count"]), found["reason"]
    if insufficient := _INSUFFICIENT.match(reason):
        resource = "gpus" if insufficient["resource"] == GPU_RESOURCE else insufficient["resource"]
        return NodeObstacle(count, f"have too {'few' if resource == 'gpus' else 'little'} {resource} left", resource)
    if "Too many pods" in reason:
        return NodeObstacle(count, "have the maximum number of pods", "pods")
    if taint := _TAINT.search(reason):
        return NodeObstacle(count, _taint_obstacle(taint["key"] or "", taint["value"] or ""))
    if text := _lookup_phrase(reason, _STORAGE_REASONS):
        return NodeObstacle(count, text, storage=True)
    text = _lookup_phrase(reason, _OTHER_REASONS)
    return NodeObstacle(count, text) if text else None


def _lookup_phrase(reason: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((text for phrase, text in table if phrase in reason), "")


def _taint_obstacle(key: str, value: str) -> str:
    """Newer versions of the scheduler do not name the taint: then key and value are empty."""
    if key.removeprefix(_NODE_TAINT_PREFIX) in _NODE_TAINTS:
        return _NODE_TAINTS[key.removeprefix(_NODE_TAINT_PREFIX)]
    taint = f" {key}={value}" if value else f" {key}" if key else ""
    return f"have a taint{taint} that it does not tolerate"


def _singular(text: str) -> str:
    verb, _, rest = text.partition(" ")
    irregular = {"are": "is", "have": "has", "do": "does", "cannot": "cannot"}
    return f"{irregular.get(verb, f'{verb}s')} {rest}"
