"""Minimal models of Kubernetes' controllers, the scheduler, the kubelet and Kubeflow's training operator.

Each is a function over the object store that takes its next step from the present state, as a level-triggered
controller does. They run after every change until none of them has anything left to do. They never crash and see every
change at once: the operator is under test, not they.
"""

from __future__ import annotations

from collections.abc import Callable

from simulation.controllers import (
    claims_and_quotas,
    cron_jobs,
    daemon_sets,
    deployments,
    garbage_collector,
    jobs,
    kubeflow,
    nodes,
    replica_sets,
    stateful_sets,
)
from simulation.object_store import ObjectStore

SimulatedController = Callable[[ObjectStore], float | None]
"""Returns after how many seconds it has to run again without a change; None for not at all."""

CONTROLLERS: tuple[SimulatedController, ...] = (
    garbage_collector.collect_garbage,
    garbage_collector.finalize_namespaces,
    cron_jobs.reconcile_cron_jobs,
    jobs.reconcile_jobs,
    kubeflow.reconcile_training_jobs,
    deployments.reconcile_deployments,
    replica_sets.reconcile_replica_sets,
    stateful_sets.reconcile_stateful_sets,
    daemon_sets.reconcile_daemon_sets,
    claims_and_quotas.bind_claims,
    claims_and_quotas.finalize_claims,
    nodes.schedule_pods,
    nodes.run_pods,
    claims_and_quotas.count_disruptions,
    claims_and_quotas.count_quotas,
)
