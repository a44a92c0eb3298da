"""Where each kind that planning speaks of lies on the wire."""

from __future__ import annotations

from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.daemon import PinterestDaemon
from pincompute.api.job_set import PinterestJobSet
from pincompute.api.kinds import KINDS
from pincompute.api.names import GROUP, KIND, VERSION
from pincompute.api.noun import Noun
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime
from pincompute.api.service import PinterestService
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.api.workload import Workload
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
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)


def resource(noun: type[Noun]) -> Resource:
    return Resource(GROUP, VERSION, noun.plural(), noun.__name__, namespaced=not noun.CLUSTER_WIDE)


NOUNS = {name: resource(noun) for name, noun in KINDS.items()}
"""Ours."""

WORKLOADS: dict[str, type[Workload]] = {
    noun.__name__: noun
    for noun in (PinterestService, PinterestJobSet, PinterestCronJob, PinterestDaemon, PinterestStatefulSet)
}
"""The workloads that the operator makes so; a new kind joins here, with its natives."""

PROJECTS = (Project,)
RUNTIMES = (Runtime, PinterestSidecar)
PLANNED: dict[str, type[Noun]] = {**WORKLOADS, **{noun.__name__: noun for noun in (*PROJECTS, *RUNTIMES)}}
"""All that the operator plans: workloads, and what they are planned by."""

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
    )
}
"""What workloads become."""

MAKERS = {REPLICA_SETS.kind: REPLICA_SETS}
"""What natives become in turn, and what copies are made by."""

PROJECT_NATIVES = {each.kind: each for each in (NAMESPACES, RESOURCE_QUOTAS, ROLE_BINDINGS, NETWORK_POLICIES)}
"""What projects become."""

PROJECT_LABELS = f"{KIND}={Project.__name__}"
"""What those bear, where the natives of a workload bear its name."""
