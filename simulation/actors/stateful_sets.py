"""StatefulSets: numbered copies, one after the other or all at once, each with its own claims."""

from __future__ import annotations

from typing import Any

from pincompute.kube.resource import CLAIMS, PODS, STATEFUL_SETS, Object
from simulation.actors import pods
from simulation.evictions import is_ready
from simulation.store import Store

_HASH = "controller-revision-hash"


def keep(store: Store) -> None:
    for each in store.all(STATEFUL_SETS):
        if not each["metadata"].get("deletionTimestamp"):
            _adopt(store, each)
            _keep(store, each)


def _adopt(store: Store, stateful_set: Object) -> None:
    """Pods of a former one that was ended without them."""
    wanted = stateful_set["spec"]["selector"]["matchLabels"]
    for each in store.all(PODS):
        metadata = each["metadata"]
        labels = metadata.get("labels", {})
        ours = (
            metadata["namespace"] == stateful_set["metadata"]["namespace"] and "apps.kubernetes.io/pod-index" in labels
        )
        if ours and not metadata.get("ownerReferences") and wanted.items() <= labels.items():
            store.change(PODS, each, lambda pod: pod["metadata"].update(ownerReferences=[pods.reference(stateful_set)]))


def _keep(store: Store, stateful_set: Object) -> None:
    spec = stateful_set["spec"]
    start, replicas = spec.get("ordinals", {}).get("start", 0), spec["replicas"]
    digest = pods.template_digest(spec["template"])
    there = {_number(each): each for each in pods.of(store, stateful_set)}
    for number in sorted(there):
        if pods.phase(there[number]) in {"Succeeded", "Failed"} and not there[number]["metadata"].get(
            "deletionTimestamp"
        ):
            store.delete(PODS, there[number])
    if not _grow(store, stateful_set, there, range(start, start + replicas), digest):
        _shrink(store, stateful_set, there, start + replicas, start)
        _renew(store, stateful_set, there, digest, start)
    _tell(store, stateful_set, digest)


def _grow(store: Store, stateful_set: Object, there: dict[int, Object], wanted: range, digest: str) -> bool:
    """Whether it is still at it."""
    ordered = stateful_set["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    busy = False
    for number in wanted:
        if number not in there:
            _make(store, stateful_set, number, digest)
            busy = True
        elif not is_ready(there[number]) or there[number]["metadata"].get("deletionTimestamp"):
            busy = True
        if busy and ordered:
            return True
    return False


def _shrink(store: Store, stateful_set: Object, there: dict[int, Object], end: int, start: int) -> None:
    retention = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy", {})
    for number in sorted(there, reverse=True):
        if start <= number < end:
            continue
        if retention.get("whenScaled") == "Delete":
            for claim in _claims(store, stateful_set, there[number]):
                store.delete(CLAIMS, claim)
        if not there[number]["metadata"].get("deletionTimestamp"):
            store.delete(PODS, there[number])
        return


def _renew(store: Store, stateful_set: Object, there: dict[int, Object], digest: str, start: int) -> None:
    strategy = stateful_set["spec"].get("updateStrategy", {})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    partition = strategy.get("rollingUpdate", {}).get("partition", 0)
    for number in sorted(there, reverse=True):
        pod = there[number]
        if pod["metadata"].get("deletionTimestamp") or number < start:
            return
        former = pod["metadata"]["labels"].get(_HASH) != digest
        if former and number >= partition:
            store.delete(PODS, pod)
            return
        if not is_ready(pod):
            return


def _make(store: Store, stateful_set: Object, number: int, digest: str) -> None:
    name = f"{stateful_set['metadata']['name']}-{number}"
    templates = stateful_set["spec"].get("volumeClaimTemplates", ())
    for each in templates:
        _make_claim(store, stateful_set, each, f"{each['metadata']['name']}-{name}")

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
        _HASH: digest,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(number),
    }
    pods.make(store, stateful_set, stateful_set["spec"]["template"], name, labels=labels, change=mount)


def _make_claim(store: Store, stateful_set: Object, template: Object, name: str) -> None:
    namespace = stateful_set["metadata"]["namespace"]
    if store.get(CLAIMS, name, namespace) is not None:
        return
    retention = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy", {})
    owners = [pods.reference(stateful_set)] if retention.get("whenDeleted") == "Delete" else []
    metadata: Object = {**template["metadata"], "name": name, "namespace": namespace}
    if owners:
        metadata["ownerReferences"] = owners
    store.create(CLAIMS, {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}})


def _claims(store: Store, stateful_set: Object, pod: Object) -> list[Object]:
    names = [f"{each['metadata']['name']}-{pod['metadata']['name']}"
             for each in stateful_set["spec"].get("volumeClaimTemplates", ())]  # fmt: skip
    found = (store.get(CLAIMS, name, stateful_set["metadata"]["namespace"]) for name in names)
    return [each for each in found if each is not None]


def _tell(store: Store, stateful_set: Object, digest: str) -> None:
    alive = pods.living(store, stateful_set)

    def change(each: Any) -> None:
        each["status"] = {
            "observedGeneration": each["metadata"]["generation"],
            "replicas": len(alive),
            "readyReplicas": pods.ready(alive),
            "availableReplicas": pods.ready(alive),
            "updatedReplicas": sum(pod["metadata"]["labels"].get(_HASH) == digest for pod in alive),
            "updateRevision": digest,
        }

    store.change(STATEFUL_SETS, stateful_set, change)


def _number(pod: Object) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
