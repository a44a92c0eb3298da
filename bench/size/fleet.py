"""The workloads of a cluster: services, stateful sets, batches, periodic jobs and daemons, by the number of pods."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from pincompute.api.names import API_VERSION
from pincompute.objects.content import Object

NODES, PODS = 3_000, 120_000
PROJECT = "size"
INFRASTRUCTURE = "infrastructure"
PROBES = 40
"""Services that are changed, and as many Deployments beside them."""
PROBE_REPLICAS = 4
_DAEMONS = 2
_CRON_JOBS = 10
_SERVICE_REPLICAS, _SET_REPLICAS, _BATCH_TASKS = 25, 10, 50
_SERVICES_SHARE, _SETS_SHARE = 0.75, 0.15
"""Of the pods that are no daemon's. The rest are tasks of batches, which end at once on simulated nodes."""


class Fleet(NamedTuple):
    fraction: Fraction

    @property
    def nodes(self) -> int:
        return max(round(NODES * self.fraction), 4)

    @property
    def pods(self) -> int:
        """Pods of the workloads, those that are changed included, without runs of periodic jobs."""
        return sum(pods_of(each, self.nodes) for each in self.workloads())

    def workloads(self) -> Iterator[Object]:
        pods = max(round(PODS * self.fraction), 500)
        plain = pods - 2 * PROBES * PROBE_REPLICAS - _DAEMONS * self.nodes
        for number in range(_DAEMONS):
            yield _workload("PinterestDaemon", f"daemon-{number}", {}, INFRASTRUCTURE)
        for number in range(_CRON_JOBS):
            yield _workload("PinterestCronJob", f"hourly-{number}", {"schedule": f"{number * 6} * * * *"})
        for number in range(round(plain * _SERVICES_SHARE / _SERVICE_REPLICAS)):
            yield service(f"service-{number}", _SERVICE_REPLICAS)
        for number in range(round(plain * _SETS_SHARE / _SET_REPLICAS)):
            spec = {"port": 8080, "replicas": _SET_REPLICAS, "rollout": {"order": "parallel"}}
            yield _workload("PinterestStatefulSet", f"set-{number}", spec)
        for number in range(round(plain * (1 - _SERVICES_SHARE - _SETS_SHARE) / _BATCH_TASKS)):
            yield _workload("PinterestJobSet", f"batch-{number}", {"tasks": _BATCH_TASKS})
        for number in range(PROBES):
            yield service(f"probe-{number}", PROBE_REPLICAS)


def pods_of(workload: Object, nodes: int) -> int:
    if workload["kind"] == "PinterestDaemon":
        return nodes
    spec = workload["spec"]
    return int(spec.get("replicas") or spec.get("tasks") or 0)


def service(name: str, replicas: int) -> Object:
    return _workload("PinterestService", name, {"port": 8080, "replicas": replicas})


def _workload(kind: str, name: str, spec: Object, project: str = PROJECT) -> Object:
    metadata = {"name": name, "namespace": project}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"image": "none:1", **spec}}


def projects() -> Iterator[Object]:
    for name in (PROJECT, INFRASTRUCTURE):
        tiers = {"on-demand": {"pods": 5 * PODS}} | ({"infrastructure": {}} if name == INFRASTRUCTURE else {})
        spec = {"owner": name, "review": "open", "quota": tiers}
        yield {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}, "spec": spec}


def bare_deployment(probe: Object, name: str) -> Object:
    """A Deployment of the shape that ours became, without our labels and without an owner."""
    template = probe["spec"]["template"]
    labels = {"app": name}
    kept = {**template, "metadata": {"labels": labels}}
    # The account exists only for the workload.
    pod_spec = {each: value for each, value in kept["spec"].items() if not each.startswith("serviceAccount")}
    spec = {
        "replicas": probe["spec"]["replicas"],
        "selector": {"matchLabels": labels},
        "strategy": probe["spec"]["strategy"],
        "template": {**kept, "spec": pod_spec},
    }
    metadata = {"name": name, "namespace": PROJECT, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
