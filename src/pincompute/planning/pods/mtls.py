"""Mutual TLS between workloads: marks the pods for the proxy, and opens its port to the listed callers only."""

from __future__ import annotations

from collections.abc import Collection

from pincompute.api.mtls import MTLS_PORT, MTLS_PORT_NAME, parse_callers, parse_calls
from pincompute.api.names import (
    APPLICATION_PORT_ANNOTATION,
    CALLERS_ANNOTATION,
    CALLERS_LABEL,
    CALLS_ANNOTATION,
    WORKLOAD_LABEL,
)
from pincompute.api.service import PinterestService
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CALLER_FORGEABLE, MTLS_NOT_SERVED
from pincompute.objects.content import Object
from pincompute.planning import names, natives
from pincompute.planning.snapshot import Snapshot

MTLS_PART = "mtls"
MIN_LEAVE_SECONDS = 8
"""A replica with callers serves for this long after its deletion. Proxies use a connection for new requests for three
seconds, so that afterwards none leads to it."""
Called = PinterestService | PinterestStatefulSet


def callers_label(owner: Called) -> dict[str, str]:
    return {CALLERS_LABEL: "listed"} if owner.spec.callers else {}


def mtls_annotations(owner: Workload) -> dict[str, str]:
    """Tell the part which workloads to admit and to call. A change of them replaces the pods, and is a revision."""
    project = owner.metadata.namespace
    annotations = {}
    if isinstance(owner, Called) and owner.spec.callers:
        callers = parse_callers(owner.spec.callers, project)
        annotations[CALLERS_ANNOTATION] = " ".join(str(each) for each in callers)
        annotations[APPLICATION_PORT_ANNOTATION] = str(owner.spec.port)
    if owner.spec.calls:
        calls = parse_calls(owner.spec.calls, project)
        annotations[CALLS_ANNOTATION] = " ".join(f"{each.callee}={each.port}" for each in calls)
    return annotations


def call_variables(owner: Workload) -> list[Object]:
    """The URL of each callee, for all containers of the workload."""
    calls = parse_calls(owner.spec.calls, owner.metadata.namespace)
    return [{"name": each.variable, "value": each.url} for each in calls]


def mtls_service_ports(owner: Called) -> list[Object]:
    if not owner.spec.callers:
        return []
    return [{"name": MTLS_PORT_NAME, "port": MTLS_PORT, "targetPort": MTLS_PORT, "protocol": "TCP"}]


def callers_policy(snapshot: Snapshot) -> tuple[Object, ...]:
    """NetworkPolicy that admits the callers to the mTLS port, and the replicas to one another.

    The policies of the project that admit all its pods, and those of other projects, leave out pods with callers.
    """
    owner: Called = snapshot.owner
    if not owner.spec.callers:
        return ()
    peers = [
        {
            "namespaceSelector": {"matchLabels": {names.NAMESPACE_NAME_LABEL: each.project}},
            "podSelector": {"matchLabels": {WORKLOAD_LABEL: each.workload}},
        }
        for each in parse_callers(owner.spec.callers, owner.metadata.namespace)
    ]
    selector = {"matchLabels": natives.selector_labels(owner)}
    spec = {
        "podSelector": selector,
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": peers, "ports": [{"port": MTLS_PORT, "protocol": "TCP"}]},
            {"from": [{"podSelector": selector}]},
        ],
    }
    name = names.callers_policy(owner)
    return (natives.build_native(snapshot, "networking.k8s.io/v1", "NetworkPolicy", {"spec": spec}, name=name),)


def mtls_problem(owner: Workload, runtime: int, parts: Collection[PinterestSidecar]) -> Problem | None:
    """Why a workload cannot call or be called: no part of its runtime is the proxy."""
    field = next((each for each in ("callers", "calls") if getattr(owner.spec, each, None)), "")
    if not field or any(MTLS_PART in each.provided_names for each in parts):
        return None
    lacking = f"runtime {runtime} has no part '{MTLS_PART}'" if runtime else "there is no runtime, which has the proxy"
    return Problem(
        MTLS_NOT_SERVED,
        f"{owner.metadata.name} has {field}, and {lacking}",
        Where(object=owner.metadata.key, field=f"spec.{field}"),
        next="infrastructure team: pin up --runtime, or roll out a runtime with the part mtls",
    )


def forgeable_caller_problem(snapshot: Snapshot) -> Problem | None:
    """Why the header of the caller could come from outside: only the platform's own ingress is known to remove it."""
    owner: PinterestService = snapshot.owner
    own_ingress = snapshot.cluster.own_ingress and not owner.spec.load_balancer.class_
    if not owner.spec.callers or not owner.spec.has_ingress or own_ingress:
        return None
    return Problem(
        CALLER_FORGEABLE,
        f"{owner.metadata.name} has callers and a public address, whose clients could set the header Pin-Caller",
        Where(object=owner.metadata.key, field="spec.callers"),
        "only the platform's own ingress is known to remove it",
        "loadBalancer: {internal: true}, and a service of its own for the public address",
    )
