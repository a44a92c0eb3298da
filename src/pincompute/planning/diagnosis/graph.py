"""The causal graph: what a workload needs, what that needs in turn, and the reasons for which each of it is blocked.

A vertex is something that exists or happens: the address, a container's program, its image, the node, the quota. An
edge leads from a vertex to one that it needs. A check is a pure function over the snapshot: it answers whether
something is blocked, by which evidence, and its reason tells at which vertex. The cause is the deepest blocked vertex:
all that is above it waits for it, and all that it needs itself is well.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from pincompute.base import reasons
from pincompute.base.reasons import Reason


class Vertex(NamedTuple):
    """Something that a workload needs, directly or not."""

    name: str
    question: str
    """The question that its checks answer."""
    needs: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


ROOT = "workload"
VERTICES: Mapping[str, Vertex] = {
    each.name: each
    for each in (
        Vertex(ROOT, "Has the workload reached its goal?", ("operator", "address", "rollout")),
        Vertex(
            "operator",
            "Has the operator observed the last change, and could it write all objects?",
            (),
            (
                reasons.OPERATOR_NOT_RESPONDING,
                reasons.CLUSTER_REFUSED,
                reasons.CANNOT_CHANGE,
                reasons.NOT_OWNED,
                reasons.DELETION_STUCK,
                reasons.STORE_FULL,
            ),
        ),
        Vertex(
            "address",
            "Does the address lead to the service?",
            ("rollout",),
            (
                reasons.HOST_TAKEN,
                reasons.HOST_NOT_LISTED,
                reasons.HOST_RESERVED,
                reasons.INGRESS_CLASS_UNKNOWN,
                reasons.INGRESS_NOT_RESPONDING,
                reasons.CERTIFICATE_MISMATCH,
                reasons.CERTIFICATE_EXPIRED,
            ),
        ),
        Vertex(
            "rollout",
            "Do all replicas have the newest revision?",
            ("replica",),
            (reasons.ROLLOUT_STALLED, reasons.ROLLOUT_BLOCKED),
        ),
        Vertex("replica", "Is the pod ready?", ("probe",), (reasons.READINESS_GATE_CLOSED,)),
        Vertex(
            "probe",
            "Does the container answer its probes?",
            ("program",),
            (reasons.HEALTH_CHECK_FAILED, reasons.PORT_NOT_LISTENING, reasons.PROBE_FAILED),
        ),
        Vertex(
            "program",
            "Does the program run?",
            ("start",),
            (
                reasons.CRASH_LOOP,
                reasons.PROGRAM_FAILED,
                reasons.OUT_OF_MEMORY,
                reasons.KILLED,
                reasons.DISK_FULL,
                reasons.DEADLINE_EXCEEDED,
            ),
        ),
        Vertex(
            "start",
            "Can the container be started: its command, user, ConfigMaps and Secrets?",
            ("init containers",),
            (
                reasons.CONFIGURATION_MISSING,
                reasons.COMMAND_NOT_FOUND,
                reasons.RUNS_AS_ROOT,
                reasons.START_FAILED,
            ),
        ),
        Vertex("init containers", "Have the init containers completed?", ("secrets",), (reasons.INIT_CONTAINER_SLOW,)),
        Vertex(
            "secrets",
            "Has the pod the secrets that the workload names?",
            ("runtime part",),
            (
                reasons.SECRET_UNKNOWN,
                reasons.SECRET_NOT_GRANTED,
                reasons.SECRETS_UNAVAILABLE,
            ),
        ),
        Vertex("runtime part", "Do the runtime parts in the pod run?", ("image",), (reasons.RUNTIME_PART_FAILING,)),
        Vertex(
            "image",
            "Can the node pull the image?",
            ("pod setup",),
            (
                reasons.IMAGE_PULL_FAILED,
                reasons.IMAGE_FORBIDDEN,
                reasons.IMAGE_NAME_INVALID,
                reasons.REGISTRY_UNREACHABLE,
                reasons.IMAGE_SLOW,
            ),
        ),
        Vertex("pod setup", "Has the pod its volumes, certificate and network?", ("node",), (reasons.POD_SETUP_SLOW,)),
        Vertex(
            "node",
            "Does the node act on the pod, and keep it?",
            ("placement",),
            (
                reasons.NODE_LOST,
                reasons.NODE_NOT_RESPONDING,
                reasons.NODE_REFUSED,
                reasons.EVICTED,
                reasons.PREEMPTED,
            ),
        ),
        Vertex(
            "placement",
            "Does a node accept the pod?",
            ("claim", "scheduler"),
            (reasons.UNSCHEDULABLE, reasons.NO_NODE_MATCHES, reasons.GANG_PARTIALLY_SCHEDULED),
        ),
        Vertex("claim", "Is every claim bound to a volume that a node reaches?", ("pod",), (reasons.CLAIM_NOT_BOUND,)),
        Vertex(
            "scheduler",
            "Does a scheduler act on the pod, and may it?",
            ("pod",),
            (reasons.SCHEDULING_GATED, reasons.SCHEDULER_UNKNOWN, reasons.SCHEDULER_NOT_RESPONDING),
        ),
        Vertex(
            "pod",
            "Has the controller created the pod?",
            ("quota", "admission"),
            (
                reasons.POD_NOT_CREATED,
                reasons.CONTROLLER_NOT_RESPONDING,
                reasons.GANG_INCOMPLETE,
                reasons.KUBEFLOW_NOT_RESPONDING,
                reasons.KIND_NOT_SERVED,
            ),
        ),
        Vertex("quota", "Does the quota allow the pod?", (), (reasons.QUOTA_USED_UP,)),
        Vertex(
            "admission",
            "Do policies and admission webhooks accept the pod?",
            (),
            (
                reasons.POD_SECURITY,
                reasons.PRIORITY_MISSING,
                reasons.ADMISSION_DENIED,
                reasons.ADMISSION_UNREACHABLE,
                reasons.POD_REJECTED,
            ),
        ),
    )
}
"""By name, from the workload downwards."""

_VERTEX_OF_REASON = {reason: vertex.name for vertex in VERTICES.values() for reason in vertex.reasons}


def vertex_of(reason: Reason) -> str:
    """The vertex that is blocked for this reason; the workload itself for all others, such as a failed task."""
    return _VERTEX_OF_REASON.get(reason, ROOT)


@cache
def depth(name: str) -> int:
    """Length of the longest path from the workload."""
    return max((depth(each.name) + 1 for each in VERTICES.values() if name in each.needs), default=0)


@cache
def below(name: str) -> frozenset[str]:
    """All that a vertex needs, directly or not."""
    return frozenset(found for each in VERTICES[name].needs for found in (each, *below(each)))


@cache
def path_to(name: str) -> tuple[str, ...]:
    """The vertices on every way from the workload to this one, from the workload downwards."""
    ways = _ways(ROOT, name)
    return tuple(each for each in VERTICES if all(each in way for way in ways))


def _ways(start: str, end: str) -> list[tuple[str, ...]]:
    if start == end:
        return [(end,)]
    return [(start, *way) for each in VERTICES[start].needs for way in _ways(each, end)]
