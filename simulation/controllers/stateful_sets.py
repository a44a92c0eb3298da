"""The StatefulSet controller: numbered pods, in order or in parallel, each with claims of its own."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object
from simulation.controllers import pods
from simulation.evictions import is_pod_ready
from simulation.object_store import ObjectStore

_HASH_LABEL = "controller-revision-hash"


def reconcile_stateful_sets(store: ObjectStore) -> None:
    for each in store.list_all(STATEFUL_SETS):
        if not each["metadata"].get("deletionTimestamp"):
            _adopt_pods(store, each)
            _reconcile_stateful_set(store, each)


def _adopt_pods(store: ObjectStore, stateful_set: Object) -> None:
    """Adopts pods of a StatefulSet that was deleted with the orphan policy."""
    wanted = stateful_set["spec"]["selector"]["matchLabels"]
    for each in store.list_all(PODS):
        metadata = each["metadata"]
        labels = metadata.get("labels", {})
        ours = (
            metadata["namespace"] == stateful_set["metadata"]["namespace"] and "apps.kubernetes.io/pod-index" in labels
        )
        if ours and not metadata.get("ownerReferences") and wanted.items() <= labels.items():
            store.change(
                PODS, each, lambda pod: pod["metadata"].update(ownerReferences=[pods.owner_reference_to(stateful_set)])
            )


def _reconcile_stateful_set(store: ObjectStore, stateful_set: Object) -> None:
    spec = stateful_set["spec"]
    start, replicas = spec.get("ordinals", {}).get("start", 0), spec["replicas"]
    template_hash = pods.template_digest(spec["template"])
    existing = {_ordinal(each): each for each in pods.controlled_by(store, stateful_set)}
    for number in sorted(existing):
        if pods.pod_phase(existing[number]) in {"Succeeded", "Failed"} and not existing[number]["metadata"].get(
            "deletionTimestamp"
        ):
            store.delete(PODS, existing[number])
    if not _scale_up(store, stateful_set, existing, range(start, start + replicas), template_hash):
        _scale_down(store, stateful_set, existing, start + replicas, start)
        _update_pods(store, stateful_set, existing, template_hash, start)
    _update_stateful_set_status(store, stateful_set, template_hash)


def _scale_up(
    store: ObjectStore, stateful_set: Object, existing: dict[int, Object], wanted: range, template_hash: str
) -> bool:
    """Creates missing pods; returns whether the set is still growing."""
    ordered = stateful_set["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    busy = False
    for number in wanted:
        if number not in existing:
            _create_numbered_pod(store, stateful_set, number, template_hash)
            busy = True
        elif not is_pod_ready(existing[number]) or existing[number]["metadata"].get("deletionTimestamp"):
            busy = True
        if busy and ordered:
            return True
    return False


def _scale_down(store: ObjectStore, stateful_set: Object, existing: dict[int, Object], end: int, start: int) -> None:
    retention = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy", {})
    for number in sorted(existing, reverse=True):
        if start <= number < end:
            continue
        if retention.get("whenScaled") == "Delete":
            for claim in _claims_of(store, stateful_set, existing[number]):
                store.delete(PERSISTENT_VOLUME_CLAIMS, claim)
        if not existing[number]["metadata"].get("deletionTimestamp"):
            store.delete(PODS, existing[number])
        return


def _update_pods(
    store: ObjectStore, stateful_set: Object, existing: dict[int, Object], template_hash: str, start: int
) -> None:
    strategy = stateful_set["spec"].get("updateStrategy", {})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    partition = strategy.get("rollingUpdate", {}).get("partition", 0)
    for number in sorted(existing, reverse=True):
        pod = existing[number]
        if pod["metadata"].get("deletionTimestamp") or number < start:
            return
        outdated = pod["metadata"]["labels"].get(_HASH_LABEL) != template_hash
        if outdated and number >= partition:
            store.delete(PODS, pod)
            return
        if not is_pod_ready(pod):
            return


def _create_numbered_pod(store: ObjectStore, stateful_set: Object, number: int, template_hash: str) -> None:
    name = f"{stateful_set['metadata']['name']}-{number}"
    templates = stateful_set["spec"].get("volumeClaimTemplates", ())
    for each in templates:
        _create_claim(store, stateful_set, each, f"{each['metadata']['name']}-{name}")

    def mount(pod: Any) -> None:
        volumes = [
            {
                "name": each["metadata"]["name"],
                "persistentVolumeClaim": {"claimName": f"{each['metadata']['name']}-{name}"},
            }
            for each in templates
        ]
        pod["spec"]["volumes"] = [*pod["spec"].get("volumes", ()), *volumes]

    labels = {
        _HASH_LABEL: template_hash,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(number),
    }
    pods.create_pod(store, stateful_set, stateful_set["spec"]["template"], name, labels=labels, change=mount)


def _create_claim(store: ObjectStore, stateful_set: Object, template: Object, name: str) -> None:
    namespace = stateful_set["metadata"]["namespace"]
    if store.get(PERSISTENT_VOLUME_CLAIMS, name, namespace) is not None:
        return
    retention = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy", {})
    owners = [pods.owner_reference_to(stateful_set)] if retention.get("whenDeleted") == "Delete" else []
    metadata: Object = {**template["metadata"], "name": name, "namespace": namespace}
    if owners:
        metadata["ownerReferences"] = owners
    store.create(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}
    )


def _claims_of(store: ObjectStore, stateful_set: Object, pod: Object) -> list[Object]:
    names = [f"{each['metadata']['name']}-{pod['metadata']['name']}"
             for each in stateful_set["spec"].get("volumeClaimTemplates", ())]  # fmt: skip
    found = (store.get(PERSISTENT_VOLUME_CLAIMS, name, stateful_set["metadata"]["namespace"]) for name in names)
    return [each for each in found if each is not None]


def _update_stateful_set_status(store: ObjectStore, stateful_set: Object, template_hash: str) -> None:
    alive = pods.live_pods(store, stateful_set)

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "readyReplicas": pods.ready_count(alive),
            "availableReplicas": pods.ready_count(alive),
            "updatedReplicas": sum(pod["metadata"]["labels"].get(_HASH_LABEL) == template_hash for pod in alive),
            "updateRevision": template_hash,
        }

    store.change(STATEFUL_SETS, stateful_set, change)


def _ordinal(pod: Object) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
