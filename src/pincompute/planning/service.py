"""What a PinterestService becomes: a Deployment that runs it, a Service and an Ingress that lead to it."""

from __future__ import annotations

import msgspec

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.base import reasons
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.planning import adoption, natives, revision, status
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.runtimes.in_place import Change, Way, of_deployment
from pincompute.planning.serving import available, container_ports, grace, leaving, probe, ready, service_ports
from pincompute.planning.snapshot import Cluster, Pod, Snapshot
from pincompute.planning.why import Finding, first_cause


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    owner: PinterestService = snapshot.owner
    made = pod.make(snapshot, _shape(owner))
    if made.problems:
        return status.refused(snapshot, made.problems)
    pods = status.pods_of(snapshot)
    current = tuple(each for each in pods if each.template == made.digest)
    way = _way(snapshot, made, pods)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        _service(snapshot),
        way.native,
        natives.disruption_budget(snapshot, owner.spec.unavailable),
        *_ingress(snapshot),
        revision.record(snapshot, made, current),
    )
    progress = status.progress(owner.spec.replicas, current)
    done = progress.ready == progress.wanted
    finding = Finding() if done else _paused(owner) or first_cause(snapshot, current)
    answering = sum(each.ready for each in pods)
    said = msgspec.structs.replace(
        status.common(snapshot, made, pods, finding.problem),
        address=address(owner, snapshot.cluster),
        progress=progress,
        conditions=[
            ready(snapshot, progress, finding.problem),
            available(snapshot, progress.wanted, answering),
        ],
    )
    taking = adoption.of(snapshot, wanted)
    again = soonest(finding.look_again, way.look_again)
    return Plan(wanted, said, again, finding.problem, revision.kept(snapshot), way.steps, taking)


def host(owner: PinterestService, cluster: Cluster) -> str:
    return owner.spec.load_balancer.host or f"{owner.metadata.name}.{owner.metadata.namespace}.{cluster.domain}"


def address(owner: PinterestService, cluster: Cluster) -> str:
    """From outside; what is internal is found by its name in the cluster."""
    balancer = owner.spec.load_balancer
    if balancer.internal:
        port = "" if balancer.port == 80 else f":{balancer.port}"
        return f"http://{owner.metadata.name}.{owner.metadata.namespace}{port}"
    path = "" if balancer.path == "/" else balancer.path
    if balancer.tls:
        return f"https://{host(owner, cluster)}{path}"
    port = "" if cluster.port == 80 else f":{cluster.port}"
    return f"http://{host(owner, cluster)}{port}{path}"


def _shape(owner: PinterestService) -> Shape:
    spec = owner.spec
    return Shape(
        container={
            "ports": container_ports(spec.port, spec.ports),
            "readinessProbe": probe(spec.port, spec.load_balancer.health_check),
            "lifecycle": leaving(spec.shutdown),
        },
        defaults={"terminationGracePeriodSeconds": grace(spec.shutdown)},
        environment=[{"name": "PORT", "value": str(spec.port)}],
    )


def _way(snapshot: Snapshot, made: Made, pods: tuple[Pod, ...]) -> Way:
    """In place where that is enough; who keeps a rollout still keeps its copies as they are."""
    spec: ServiceSpec = snapshot.owner.spec
    still = _deployment(snapshot, made, paused=True)
    if spec.rollout.paused:
        return Way(still)
    change = Change(snapshot, made, pods, spec.replicas, spec.unavailable)
    return of_deployment(change, _deployment(snapshot, made, paused=False), still)


def _deployment(snapshot: Snapshot, made: Made, *, paused: bool) -> Object:
    owner: PinterestService = snapshot.owner
    rollout = owner.spec.rollout
    spec = {
        "replicas": owner.spec.replicas,
        "selector": {"matchLabels": natives.selector(owner)},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": rollout.surge, "maxUnavailable": rollout.unavailable},
        },
        "minReadySeconds": rollout.min_ready_seconds,
        "progressDeadlineSeconds": max(rollout.deadline_seconds, rollout.min_ready_seconds + 1),
        "paused": paused,
        # What it was is in records of our own; a former ReplicaSet could be taken for one that was changed in place.
        "revisionHistoryLimit": 0,
        "template": made.template,
    }
    return natives.native(snapshot, "apps/v1", "Deployment", {"spec": spec})


def _service(snapshot: Snapshot) -> Object:
    balancer = snapshot.owner.spec.load_balancer
    main, *others = service_ports(snapshot.owner, balancer.port)
    ports = [{**main, "name": balancer.port_name} if balancer.port_name else _unnamed(main), *others]
    return natives.native(
        snapshot, "v1", "Service", {"spec": {"selector": natives.selector(snapshot.owner), "ports": ports}}
    )


def _unnamed(port: Object) -> Object:
    return {field: value for field, value in port.items() if field != "name"}


def _ingress(snapshot: Snapshot) -> tuple[Object, ...]:
    owner: PinterestService = snapshot.owner
    balancer = owner.spec.load_balancer
    if balancer.internal:
        return ()
    name = host(owner, snapshot.cluster)
    port = {"name": balancer.port_name} if balancer.port_name else {"number": balancer.port}
    backend = {"service": {"name": owner.metadata.name, "port": port}}
    path = {"path": balancer.path, "pathType": "Prefix", "backend": backend}
    spec: Object = {"rules": [{"host": name, "http": {"paths": [path]}}]}
    if balancer.tls:
        spec["tls"] = [{"hosts": [name], "secretName": balancer.tls}]
    return (natives.native(snapshot, "networking.k8s.io/v1", "Ingress", {"spec": spec}),)


def _paused(owner: PinterestService) -> Finding | None:
    """Kept still on purpose: nothing is wrong, and it says by whom."""
    if not owner.spec.rollout.paused:
        return None
    return Finding(
        Problem(
            reasons.PAUSED,
            f"the rollout is paused by {owner.spec.rollout.paused}",
            next=f"pin resume {owner.metadata.name}",
        )
    )
