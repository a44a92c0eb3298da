"""Plans a PinterestStatefulSet: a StatefulSet with numbered replicas, and a headless Service that names each."""

from __future__ import annotations

import msgspec

from pincompute.api.names import CLAIMS_ANNOTATION
from pincompute.api.serving import MAIN_PORT_NAME
from pincompute.api.stateful_set import PinterestStatefulSet, StatefulSetSpec
from pincompute.objects.content import Object
from pincompute.planning import natives, revision, status
from pincompute.planning.diagnosis import Finding
from pincompute.planning.diagnosis.address import SERVED
from pincompute.planning.diagnosis.registration import check_registration
from pincompute.planning.kinds import serving, stateful_storage
from pincompute.planning.migration import adoption
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.pods import pod
from pincompute.planning.pods.mtls import callers_label, callers_policy, mtls_service_ports
from pincompute.planning.pods.pod import BuiltTemplate, PodOverlay
from pincompute.planning.pods.traffic import leaving, readers_annotation, serverset_labels
from pincompute.planning.rollout import stateful_replicas
from pincompute.planning.rollout.stateful_replicas import StatefulReplicas
from pincompute.planning.runtimes.in_place import InPlaceUpdate, TemplateChange, update_stateful_set
from pincompute.planning.snapshot import Snapshot

_STORAGE_GROUP_ID = 1000
"""Group of new volumes, and supplementary group of all containers, so that any user in them may write."""
_ORDINAL = "metadata.labels['apps.kubernetes.io/pod-index']"
_RETENTION = {"keep": "Retain", "delete": "Delete"}
_ORDER = {"ordered": "OrderedReady", "parallel": "Parallel"}


def plan(snapshot: Snapshot) -> Plan:
    """Plan the objects of a stateful set."""
    owner: PinterestStatefulSet = snapshot.owner
    built = pod.build_template(snapshot, _stateful_overlay(owner))
    stateful_set = _stateful_set(snapshot, built, stateful_replicas.rollout_partition(owner))
    problems = (
        *built.problems,
        *stateful_storage.claim_shrink_problems(snapshot),
        *stateful_replicas.partition_problems(snapshot, stateful_set),
    )
    if problems:
        return status.refused_plan(snapshot, problems)
    pods = status.active_pods_of(snapshot)
    replicas = stateful_replicas.find_replicas(owner, built, pods)
    update = _rollout(snapshot, built, replicas, stateful_set)
    wanted = (
        natives.service_account(snapshot),
        *natives.configuration_files(snapshot),
        _service(snapshot),
        *callers_policy(snapshot),
        update.native,
        *natives.disruption_budget(snapshot, owner.spec.unavailable),
        revision.revision_record(
            snapshot, built, tuple(each for each in replicas.current if each.template_hash == built.template_hash)
        ),
    )
    progress = status.pod_progress(owner.spec.replicas, replicas.current)
    done = progress.ready == progress.wanted
    finding = Finding() if done else stateful_replicas.rollout_finding(snapshot, replicas)
    served = check_registration(snapshot, replicas.current) if done else SERVED
    problem = finding.problem or served.problem
    held_back = sum(each.template_hash != built.template_hash for each in replicas.current)
    remark = f", {held_back} of them held back on a former revision" if held_back else ""
    new_status = msgspec.structs.replace(
        status.common_status(snapshot, built, pods, problem),
        address=f"{owner.metadata.name}.{owner.metadata.namespace}:{owner.spec.port}",
        progress=progress,
        conditions=[
            serving.ready_condition(snapshot, progress, pods, problem, remark, awaited=served.awaited),
            serving.available_condition(snapshot, progress.wanted, pods),
        ],
    )
    stuck = stateful_replicas.evictions_of_stuck_replicas(snapshot, stateful_set, replicas)
    evictions = () if update.rollout_held else stuck
    return Plan(
        wanted,
        new_status,
        wake_after_s=soonest(finding.recheck_after_s, update.recheck_after_s, served.recheck_after_s),
        why=problem,
        retained=revision.retained_revisions(snapshot),
        steps=(*stateful_storage.claim_expansions(snapshot), *update.steps, *evictions),
        adoption=adoption.plan_adoption(snapshot, wanted),
    )


def _stateful_overlay(owner: PinterestStatefulSet) -> PodOverlay:
    spec = owner.spec
    shutdown = leaving(owner)
    return PodOverlay(
        container={
            "ports": serving.container_ports(spec.port, spec.ports, MAIN_PORT_NAME),
            "readinessProbe": serving.readiness_probe(spec.port, spec.health_check),
            "lifecycle": serving.pre_stop_hook(shutdown),
        },
        defaults={
            "terminationGracePeriodSeconds": serving.termination_grace_s(shutdown),
            "securityContext": {"fsGroup": _STORAGE_GROUP_ID, "fsGroupChangePolicy": "OnRootMismatch"},
        },
        environment=[
            {"name": "PORT", "value": str(spec.port)},
            {"name": "PIN_ORDINAL", "valueFrom": {"fieldRef": {"fieldPath": _ORDINAL}}},
        ],
        mounts=stateful_storage.claim_mounts(owner),
        labels={**serverset_labels(spec.serverset), **callers_label(owner)},
        annotations={CLAIMS_ANNOTATION: " ".join(sorted(spec.all_claims))} if spec.all_claims else {},
    )


def _service(snapshot: Snapshot) -> Object:
    """Replicas have DNS names before they are ready, because they find each other before they serve."""
    owner = snapshot.owner
    ports = [*serving.service_ports(owner, owner.spec.port, MAIN_PORT_NAME), *mtls_service_ports(owner)]
    return natives.headless_service(snapshot, ports, readers_annotation(owner.spec.serverset))


def _rollout(snapshot: Snapshot, built: BuiltTemplate, replicas: StatefulReplicas, wanted: Object) -> InPlaceUpdate:
    """Update in place if only sidecar images differ. While replicas are held back, no pod changes."""
    spec: StatefulSetSpec = snapshot.owner.spec
    if stateful_replicas.rollout_partition(snapshot.owner):
        return InPlaceUpdate(wanted)
    change = TemplateChange(snapshot, built, (*replicas.current, *replicas.former), spec.replicas, spec.unavailable)
    return update_stateful_set(change, wanted, _stateful_set(snapshot, built, spec.replicas))


def _stateful_set(snapshot: Snapshot, built: BuiltTemplate, partition: int) -> Object:
    """StatefulSet that updates only the replicas from `partition` on."""
    owner: PinterestStatefulSet = snapshot.owner
    spec, rollout = owner.spec, owner.spec.rollout
    body: Object = {
        "replicas": spec.replicas,
        "serviceName": owner.metadata.name,
        "selector": {"matchLabels": natives.selector_labels(owner)},
        "ordinals": {"start": spec.ordinals.start},
        "podManagementPolicy": _ORDER[rollout.order],
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "minReadySeconds": rollout.min_ready_seconds,
        "persistentVolumeClaimRetentionPolicy": {
            # An expired workload is scaled to zero and then deleted by the platform, which deletes no data.
            "whenDeleted": _RETENTION["keep" if snapshot.expired else spec.retention.deleted],
            "whenScaled": _RETENTION["keep" if snapshot.expired else spec.retention.scaled_down],
        },
        "template": built.template,
    }
    if spec.all_claims:
        body["volumeClaimTemplates"] = stateful_storage.claim_templates(owner)
    return natives.build_native(snapshot, "apps/v1", "StatefulSet", {"spec": body})
