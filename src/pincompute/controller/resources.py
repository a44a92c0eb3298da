"""Where each kind that planning speaks of lies on the wire."""

from __future__ import annotations

from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import GROUP, KIND, VERSION
from pincompute.api.noun import Noun
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.sidecar import PinterestSidecar
from pincompute.kube.resource import (
    CLAIMS,
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    JOBS,
    NAMESPACES,
    NETWORK_POLICIES,
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


def resource(noun: type[Noun]) -> Resource:
    return Resource(GROUP, VERSION, noun.plural(), noun.__name__, namespaced=not noun.CLUSTER_WIDE)


NOUNS = {name: resource(noun) for name, noun in KINDS.items()}
"""Ours."""

PROJECTS = (Project,)
RUNTIMES = (Runtime, PinterestSidecar)
PLANNED: dict[str, type[Noun]] = {**WORKLOADS, **{noun.__name__: noun for noun in (*PROJECTS, *RUNTIMES)}}
"""All that the operator plans: workloads, and what they are planned by."""

NEIGHBOURS = {each.kind: each for each in (PYTORCH_JOBS, TF_JOBS)}
"""Natives of whom a cluster may have nobody: those that become none go on without them."""

NATIVES = {
    each.kind: each
    for each in (
        SERVICE_ACCOUNTS,
        CONFIG_MAPS,
        SERVICES,
        CLAIMS,
        DEPLOYMENTS,
        STATEFUL_SETS,
        DAEMON_SETS,
        JOBS,
        CRON_JOBS,
        DISRUPTION_BUDGETS,
        INGRESSES,
        *NEIGHBOURS.values(),
    )
}
"""What workloads become."""

MAKERS = {REPLICA_SETS.kind: REPLICA_SETS}
"""What natives become in turn, and what copies are made by."""

PROJECT_NATIVES = {each.kind: each for each in (NAMESPACES, RESOURCE_QUOTAS, ROLE_BINDINGS, NETWORK_POLICIES)}
"""What projects become."""

BECOME = {**NATIVES, **PROJECT_NATIVES}
"""What either become."""

PROJECT_LABELS = f"{KIND}={Project.__name__}"
"""What those bear, where the natives of a workload bear its name."""
