"""What a PinterestStatefulSet becomes: a StatefulSet that numbers its copies, and a Service that gives each a name."""

from __future__ import annotations

import msgspec

from pincompute.api.names import CLAIMS
from pincompute.api.serving import MAIN_PORT_NAME
from pincompute.api.stateful_set import PinterestStatefulSet, StatefulSetSpec
from pincompute.objects.content import Object
from pincompute.planning import copies, natives, revision, serving, status, storage
from pincompute.planning.copies import Copies
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.pod import Made, Shape
from pincompute.planning.runtimes.in_place import Change, Way, of_stateful_set
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.why import Finding

GROUP = 1000
"""The group that new storage belongs to, and every program beside its own: it may write whoever it runs as."""
_ORDINAL = "metadata.labels['apps.kubernetes.io/pod-index']"
_RETENTION = {"keep": "Retain", "delete": "Delete"}
_ORDER = {"ordered": "OrderedReady", "parallel": "Parallel"}


def plan(snapshot: Snapshot) -> Plan:
    """The one signature; planning the same snapshot twice gives the same plan."""
    owner: PinterestStatefulSet = snapshot.owner
    made = pod.make(snapshot, _shape(owner))
    stateful_set = _stateful_set(snapshot, made, copies.partition(owner))
    problems = (*made.problems, *storage.shrinking(snapshot), *copies.held_back(snapshot, stateful_set))
    if problems:
        return status.refused(snapshot, problems)
    pods = status.pods_of(snapshot)
    found = copies.find(owner, made, pods)
    way = _way(snapshot, made, found, stateful_set)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration(snapshot),
        _service(snapshot),
        way.native,
        natives.disruption_budget(snapshot, owner.spec.unavailable),
        revision.record(snapshot, made, tuple(each for each in found.current if each.template == made.digest)),
    )
    progress = status.progress(owner.spec.replicas, found.current)
    done = progress.ready == progress.wanted
    finding = Finding() if done else copies.cause(snapshot, found)
    held = sum(each.template != made.digest for each in found.current)
    beside = f", {held} of them of a former revision on purpose" if held else ""
    said = msgspec.structs.replace(
        status.common(snapshot, made, pods, finding.problem),
        address=f"{owner.metadata.name}.{owner.metadata.namespace}:{owner.spec.port}",
        progress=progress,
        conditions=[
            serving.ready(snapshot, progress, finding.problem, beside),
            serving.available(snapshot, progress.wanted, sum(each.ready for each in pods)),
        ],
    )
    evictions = () if way.still else copies.evictions(snapshot, stateful_set, found)
    steps = (*storage.growing(snapshot), *way.steps, *evictions)
    again = soonest(finding.look_again, way.look_again)
    return Plan(wanted, said, again, finding.problem, revision.kept(snapshot), steps)


def _shape(owner: PinterestStatefulSet) -> Shape:
    spec = owner.spec
    return Shape(
        container={
            "ports": serving.container_ports(spec.port, spec.ports, MAIN_PORT_NAME),
            "readinessProbe": serving.probe(spec.port, spec.health_check),
            "lifecycle": serving.leaving(spec.shutdown),
        },
        defaults={
            "terminationGracePeriodSeconds": serving.grace(spec.shutdown),
            "securityContext": {"fsGroup": GROUP, "fsGroupChangePolicy": "OnRootMismatch"},
        },
        environment=[
            {"name": "PORT", "value": str(spec.port)},
            {"name": "PIN_ORDINAL", "valueFrom": {"fieldRef": {"fieldPath": _ORDINAL}}},
        ],
        mounts=storage.volumes(owner),
        annotations={CLAIMS: " ".join(sorted(spec.all_claims))} if spec.all_claims else {},
    )


def _service(snapshot: Snapshot) -> Object:
    """Every copy has a name below it from its first moment on: they look for one another before they answer."""
    owner = snapshot.owner
    return natives.headless_service(snapshot, serving.service_ports(owner, owner.spec.port, MAIN_PORT_NAME))


def _way(snapshot: Snapshot, made: Made, found: Copies, wanted: Object) -> Way:
    """In place where that is enough; who holds copies back keeps them as they are."""
    spec: StatefulSetSpec = snapshot.owner.spec
    if copies.partition(snapshot.owner):
        return Way(wanted)
    change = Change(snapshot, made, (*found.current, *found.former), spec.replicas, spec.unavailable)
    return of_stateful_set(change, wanted, _stateful_set(snapshot, made, spec.replicas))


def _stateful_set(snapshot: Snapshot, made: Made, partition: int) -> Object:
    """So many of the first copies stay as they are."""
    owner: PinterestStatefulSet = snapshot.owner
    spec, rollout = owner.spec, owner.spec.rollout
    body: Object = {
        "replicas": spec.replicas,
        "serviceName": owner.metadata.name,
        "selector": {"matchLabels": natives.selector(owner)},
        "ordinals": {"start": spec.ordinals.start},
        "podManagementPolicy": _ORDER[rollout.order],
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "minReadySeconds": rollout.min_ready_seconds,
        "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": _RETENTION[spec.retention.deleted],
            "whenScaled": _RETENTION[spec.retention.scaled_down],
        },
        "template": made.template,
    }
    if spec.all_claims:
        body["volumeClaimTemplates"] = storage.templates(owner)
    return natives.native(snapshot, "apps/v1", "StatefulSet", {"spec": body})
