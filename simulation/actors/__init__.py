"""Those who keep a cluster going, as small as they can be: each looks at what is there and takes its next step."""

from __future__ import annotations

from collections.abc import Callable

from simulation.actors import (
    collector,
    cron_jobs,
    daemon_sets,
    deployments,
    jobs,
    kubeflow,
    nodes,
    replica_sets,
    stateful_sets,
    surroundings,
)
from simulation.store import Store

Actor = Callable[[Store], float | None]
"""Answers after how many seconds it should look again, if time alone could matter."""

ACTORS: tuple[Actor, ...] = (
    collector.collect,
    collector.end_namespaces,
    cron_jobs.keep,
    jobs.keep,
    kubeflow.keep,
    deployments.keep,
    replica_sets.keep,
    stateful_sets.keep,
    daemon_sets.keep,
    surroundings.bind_claims,
    surroundings.end_claims,
    nodes.schedule,
    nodes.run,
    surroundings.count_disruptions,
    surroundings.count_quotas,
)
