"""The API resources of every kind that planning names: its group, version, plural and scope."""

from __future__ import annotations

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import GROUP, KIND_LABEL, VERSION
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.sidecar import PinterestSidecar
from pincompute.kube.resource import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TF_JOBS,
    Resource,
)


def custom_resource(kind: type[CustomResource]) -> Resource:
    return Resource(GROUP, VERSION, kind.plural(), kind.__name__, namespaced=not kind.CLUSTER_SCOPED)


CUSTOM_RESOURCES = {name: custom_resource(kind) for name, kind in KINDS.items()}
"""Our own kinds."""

PROJECT_KINDS = (Project,)
RUNTIME_KINDS = (Runtime, PinterestSidecar)
RECONCILED_KINDS: dict[str, type[CustomResource]] = {
    **WORKLOADS,
    **{kind.__name__: kind for kind in (*PROJECT_KINDS, *RUNTIME_KINDS)},
}
"""Kinds that the operator reconciles: workloads, and the kinds that workloads are planned from."""

OPTIONAL_NATIVES = {each.kind: each for each in (PYTORCH_JOBS, TF_JOBS)}
"""Natives that a cluster need not serve: only the workloads that become one wait for it."""

WORKLOAD_NATIVES = {
    each.kind: each
    for each in (
        SERVICE_ACCOUNTS,
        CONFIG_MAPS,
        SERVICES,
        PERSISTENT_VOLUME_CLAIMS,
        DEPLOYMENTS,
        STATEFUL_SETS,
        DAEMON_SETS,
        JOBS,
        CRON_JOBS,
        POD_DISRUPTION_BUDGETS,
        INGRESSES,
        NETWORK_POLICIES,
        *OPTIONAL_NATIVES.values(),
    )
}
"""Natives that workloads become."""

POD_CONTROLLERS = {REPLICA_SETS.kind: REPLICA_SETS}
"""Objects that Kubernetes creates between a native and its pods."""

PROJECT_NATIVES = {
    each.kind: each for each in (NAMESPACES, RESOURCE_QUOTAS, LIMIT_RANGES, ROLE_BINDINGS, NETWORK_POLICIES)
}
"""Natives that projects become."""

ALL_NATIVES = {**WORKLOAD_NATIVES, **PROJECT_NATIVES}

PROJECT_NATIVE_SELECTOR = f"{KIND_LABEL}={Project.__name__}"
"""Label selector of the natives of projects. The natives of a workload are selected by the workload's name instead."""
