"""Plans a PinterestService: a Deployment, a Service and an Ingress; an internal one has the first two, a worker one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.status import HOST_UNLISTED, Condition
from pincompute.objects.content import Object
from pincompute.planning import natives, revision, status
from pincompute.planning.diagnosis import Finding, first_cause
from pincompute.planning.diagnosis.address import SERVED, AddressFinding, check_address
from pincompute.planning.diagnosis.registration import check_registration
from pincompute.planning.ingress_grants import ingress_annotations, ingress_problems, tls_secret
from pincompute.planning.kinds.serving import (
    available_condition,
    container_ports,
    pre_stop_hook,
    readiness_probe,
    ready_condition,
    service_ports,
    termination_grace_s,
)
from pincompute.planning.migration import adoption
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.mtls import (
    callers_label,
    callers_policy,
    forgeable_caller_problem,
    mtls_service_ports,
)
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.pods.traffic import leaving, readers_annotation, serverset_labels
from pincompute.planning.runtimes.in_place import InPlaceUpdate, TemplateChange, update_deployment
from pincompute.planning.snapshot import Cluster, Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a service."""
    owner: PinterestService = snapshot.owner
    built = pod.build_template(snapshot, _service_overlay(owner))
    forgeable = forgeable_caller_problem(snapshot)
    problems = (*built.problems, *ingress_problems(owner, snapshot.project), *((forgeable,) if forgeable else ()))
    if problems:
        return status.refused_plan(snapshot, problems)
    pods = status.active_pods_of(snapshot)
    current = tuple(each for each in pods if each.template_hash == built.template_hash)
    update = _rollout(snapshot, built, pods)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(snapshot),
        *_service(snapshot),
        *callers_policy(snapshot),
        update.native,
        *natives.disruption_budget(snapshot, owner.spec.unavailable),
        *(() if snapshot.host.problem else _ingress(snapshot)),
        revision.revision_record(snapshot, built, current),
    )
    progress = status.pod_progress(owner.spec.replicas, current)
    done = progress.ready == progress.wanted
    paused = status.paused_problem(owner)
    finding = Finding() if done else Finding(paused) if paused else first_cause(snapshot, current)
    # Replicas that do not run are more urgent than a host that does not lead to them.
    problem = finding.problem or snapshot.host.problem
    served = _check_reachable(snapshot, current) if done and not problem else SERVED
    problem = problem or served.problem
    new_status = msgspec.structs.replace(
        status.common_status(snapshot, built, pods, problem),
        address="" if snapshot.host.problem else service_address(owner, snapshot.cluster),
        progress=progress,
        conditions=[
            ready_condition(snapshot, progress, pods, problem, awaited=served.awaited),
            available_condition(snapshot, progress.wanted, pods),
            *_host_conditions(snapshot),
        ],
    )
    return Plan(
        wanted,
        new_status,
        wake_after_s=soonest(finding.recheck_after_s, update.recheck_after_s, served.recheck_after_s),
        why=problem,
        retained=revision.retained_revisions(snapshot),
        steps=update.steps,
        adoption=adoption.plan_adoption(snapshot, wanted),
    )


def _check_reachable(snapshot: Snapshot, pods: Sequence[Pod]) -> AddressFinding:
    """Whether clients find the ready replicas: by the address, and by the serverset."""
    served = check_address(snapshot, ingress_host(snapshot.owner, snapshot.cluster))
    return check_registration(snapshot, pods) if served == SERVED else served


def _host_conditions(snapshot: Snapshot) -> list[Condition]:
    """The warning of a service that keeps a host which its project was not given."""
    kept = snapshot.host.kept
    if kept is None:
        return []
    message = f"{kept.message()}; to give it the host: {kept.next}"
    return [status.build_condition(snapshot, HOST_UNLISTED, kept.reason, message, status=True)]


def ingress_host(owner: PinterestService, cluster: Cluster) -> str:
    return owner.spec.load_balancer.host or f"{owner.metadata.name}.{owner.metadata.namespace}.{cluster.domain}"


def service_address(owner: PinterestService, cluster: Cluster) -> str:
    """External URL; the cluster-internal URL of an internal service; none of a worker."""
    if owner.spec.worker:
        return ""
    balancer = owner.spec.load_balancer
    if balancer.internal:
        port = "" if balancer.port == 80 else f":{balancer.port}"
        return f"http://{owner.metadata.name}.{owner.metadata.namespace}{port}"
    path = "" if balancer.path == "/" else balancer.path
    if balancer.has_tls:
        port = "" if cluster.https_port == 443 or balancer.class_ else f":{cluster.https_port}"
        return f"https://{ingress_host(owner, cluster)}{port}{path}"
    port = "" if cluster.port == 80 else f":{cluster.port}"
    return f"http://{ingress_host(owner, cluster)}{port}{path}"


def _service_overlay(owner: PinterestService) -> PodOverlay:
    spec = owner.spec
    if spec.worker:
        # No load balancer has to remove a worker before it ends.
        return PodOverlay(defaults={"terminationGracePeriodSeconds": spec.shutdown.grace_seconds})
    shutdown = leaving(owner)
    return PodOverlay(
        container={
            "ports": container_ports(spec.port, spec.ports),
            "readinessProbe": readiness_probe(spec.port, spec.load_balancer.health_check),
            "lifecycle": pre_stop_hook(shutdown),
        },
        defaults={"terminationGracePeriodSeconds": termination_grace_s(shutdown)},
        environment=[{"name": "PORT", "value": str(spec.port)}],
        labels={**serverset_labels(spec.serverset), **callers_label(owner)},
    )


def _rollout(snapshot: Snapshot, built: BuiltTemplate, pods: tuple[Pod, ...]) -> InPlaceUpdate:
    """Update in place if only sidecar images differ. While the rollout is paused, no pod changes."""
    spec: ServiceSpec = snapshot.owner.spec
    paused = _deployment(snapshot, built, paused=True)
    if spec.rollout.paused:
        return InPlaceUpdate(paused)
    change = TemplateChange(snapshot, built, pods, spec.replicas, spec.unavailable)
    return update_deployment(change, _deployment(snapshot, built, paused=False), paused)


def _deployment(snapshot: Snapshot, built: BuiltTemplate, *, paused: bool) -> Object:
    owner: PinterestService = snapshot.owner
    rollout = owner.spec.rollout
    spec = {
        "replicas": owner.spec.replicas,
        "selector": {"matchLabels": natives.selector_labels(owner)},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": rollout.surge, "maxUnavailable": rollout.unavailable},
        },
        "minReadySeconds": rollout.min_ready_seconds,
        "progressDeadlineSeconds": max(rollout.deadline_seconds, rollout.min_ready_seconds + 1),
        "paused": paused,
        # Former revisions are in records of our own, and a former ReplicaSet could be mistaken for one that was
        # updated in place.
        "revisionHistoryLimit": 0,
        "template": built.template,
    }
    return natives.build_native(snapshot, "apps/v1", "Deployment", {"spec": spec})


def _service(snapshot: Snapshot) -> tuple[Object, ...]:
    if snapshot.owner.spec.worker:
        return ()
    balancer = snapshot.owner.spec.load_balancer
    main, *others = service_ports(snapshot.owner, balancer.port)
    ports = [{**main, "name": balancer.port_name} if balancer.port_name else _unnamed(main), *others]
    ports += mtls_service_ports(snapshot.owner)
    spec = {"selector": natives.selector_labels(snapshot.owner), "ports": ports}
    annotations = readers_annotation(snapshot.owner.spec.serverset)
    return (natives.build_native(snapshot, "v1", "Service", {"spec": spec}, annotations=annotations),)


def _unnamed(port: Object) -> Object:
    return {field: value for field, value in port.items() if field != "name"}


def _ingress(snapshot: Snapshot) -> tuple[Object, ...]:
    owner: PinterestService = snapshot.owner
    balancer = owner.spec.load_balancer
    if not owner.spec.has_ingress:
        return ()
    name = ingress_host(owner, snapshot.cluster)
    port = {"name": balancer.port_name} if balancer.port_name else {"number": balancer.port}
    backend = {"service": {"name": owner.metadata.name, "port": port}}
    path = {"path": balancer.path, "pathType": "Prefix", "backend": backend}
    spec: Object = {"rules": [{"host": name, "http": {"paths": [path]}}]}
    if balancer.class_:
        spec["ingressClassName"] = balancer.class_
    if balancer.has_tls:
        spec["tls"] = [{"hosts": [name], "secretName": tls_secret(owner)}]
    annotations = ingress_annotations(owner, snapshot.project)
    return (natives.build_native(snapshot, "networking.k8s.io/v1", "Ingress", {"spec": spec}, annotations=annotations),)
