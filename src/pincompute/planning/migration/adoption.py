"""Adoption of imported objects: their pods become the workload's without a restart or a gap in traffic.

Both sides have to agree: an annotation of the workload names each object with its uid, and each object has the label of
the workload. No progress is stored: each pass derives the next stage from the objects that exist, so that an adoption
can be interrupted at any point.

The stages of a Deployment, each begun only once the one before is visible:

1. The foreign Deployment is deleted with its pods orphaned, so that nothing scales them any more.
2. The ReplicaSets and their pods get the labels of the workload.
3. The workload's own Deployment adopts the ReplicaSets by these labels.
4. Service, Ingress and the other objects are adopted, or deleted where the workload has none of that name.

A StatefulSet controls its pods itself: they get the labels first, then it is deleted with its pods orphaned, and the
workload's adopts them by their labels and names. Its rollout is held back, so that it replaces none. A CronJob is
adopted itself. Its new content takes effect with the next run, and its Jobs go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pincompute.api.names import ADOPTION_ANNOTATION, KIND_LABEL
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CONFLICT
from pincompute.objects.content import Object, object_label
from pincompute.planning.natives import tracking_labels
from pincompute.planning.plan import Adoption
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import Delete, LabelPods, PatchImages, Step

DEPLOYMENT, REPLICA_SET = "Deployment", "ReplicaSet"
STATEFUL_SET, CRON_JOB = "StatefulSet", "CronJob"
_RECREATED_KINDS = (DEPLOYMENT, STATEFUL_SET)
"""Kinds whose selector is immutable: the workload's own object adopts the pods instead."""


class AdoptionRequest(NamedTuple):
    """One object that the workload shall adopt."""

    native: str
    """`Deployment/web`."""
    uid: str
    generation: int = 0
    """Generation at the time of the import."""

    @classmethod
    def parse_all(cls, annotation: str) -> tuple[AdoptionRequest, ...]:
        """Parses entries such as `Deployment/web=UID@3`, separated by spaces; malformed ones are ignored."""
        entries = (each.partition("=") for each in annotation.split())
        fields = ((native, *rest.partition("@")) for native, _, rest in entries)
        return tuple(cls(native, uid, int(number)) for native, uid, _, number in fields if number.isdigit())

    def __str__(self) -> str:
        return f"{self.native}={self.uid}@{self.generation}"


def adoption_annotation(natives: Iterable[Object]) -> str:
    """The value of the annotation for the objects to adopt."""
    metadata = ((object_label(each), each["metadata"]) for each in natives)
    return " ".join(str(AdoptionRequest(name, each["uid"], each.get("generation", 0))) for name, each in metadata)


def plan_adoption(snapshot: Snapshot, wanted: Sequence[Object]) -> Adoption:
    """The next stage of the adoption; empty for workloads that adopt nothing."""
    annotation = snapshot.owner.metadata.annotations.get(ADOPTION_ANNOTATION, "")
    requests = {each.uid: each for each in AdoptionRequest.parse_all(annotation)}
    if not requests:
        return Adoption()
    foreign = [
        native for native in snapshot.natives if native.metadata.uid in requests and _is_foreign(snapshot.owner, native)
    ]
    later = tuple(native.metadata.uid for native in foreign)
    recreated = [native for native in foreign if native.kind in _RECREATED_KINDS]
    problems = tuple(
        _conflict(snapshot.owner, native, requests)
        for native in foreign
        if native.kind in (*_RECREATED_KINDS, CRON_JOB) and _was_changed_since_import(native, requests)
    )
    if recreated or problems:
        steps = tuple(
            _delete_foreign(each)
            if _pods_labelled(snapshot, each)
            else LabelPods(each.metadata.name, each.metadata.uid, tracking_labels(snapshot.owner))
            for each in recreated
        )
        return Adoption(adopt_later=later, steps=steps, problems=problems)
    replica_sets = [each for each in snapshot.natives if each.kind == REPLICA_SET and _is_adoptable(snapshot, each)]
    steps = tuple(step for each in replica_sets for step in _label_replica_set(snapshot.owner, each))
    if steps or not _pods_adopted(snapshot, replica_sets, requests):
        return Adoption(adopt_later=later, steps=steps)
    wanted_labels = {object_label(each) for each in wanted}
    adopted = [native for native in foreign if _native_label(native) in wanted_labels]
    superseded = [native for native in foreign if native not in adopted]
    return Adoption(tuple(native.metadata.uid for native in adopted), steps=tuple(map(_delete_foreign, superseded)))


def _delete_foreign(native: Native) -> Delete:
    """Deletes an object that the workload replaces; its pods are orphaned and keep running."""
    return Delete(native.kind, native.metadata.name, native.metadata.uid, orphan_pods=native.kind in _RECREATED_KINDS)


def _pods_labelled(snapshot: Snapshot, native: Native) -> bool:
    """True once all pods of a StatefulSet have the label, by which the new one adopts them.

    The new StatefulSet could neither adopt a pod without it, nor use its name for another.
    """
    if native.kind != STATEFUL_SET:
        return True
    labelled = sum(each.workload == snapshot.owner.metadata.name for each in snapshot.pods)
    return labelled >= native.status.replicas


def _is_foreign(owner: Workload, native: Native) -> bool:
    """True for objects that the workload does not own yet; ReplicaSets will belong to its Deployment instead."""
    return native.kind != REPLICA_SET and native.metadata.controller_uid != owner.metadata.uid


def _own(snapshot: Snapshot, kind: str) -> list[Native]:
    owner = snapshot.owner.metadata.uid
    return [each for each in snapshot.natives if each.kind == kind and each.metadata.controller_uid == owner]


def _is_adoptable(snapshot: Snapshot, native: Native) -> bool:
    """True for an orphaned ReplicaSet, and for one that the workload's Deployment has adopted already.

    The snapshot has only ReplicaSets with the label of the workload, which the import has set.
    """
    return native.metadata.controller_uid in {"", *(each.metadata.uid for each in _own(snapshot, DEPLOYMENT))}


def _label_replica_set(owner: Workload, native: Native) -> Iterator[Step]:
    """Labels the template first, and the existing pods afterwards: a pod created in between has the labels already."""
    metadata, labels = native.metadata, tracking_labels(owner)
    if KIND_LABEL not in metadata.labels:
        yield PatchImages(native.kind, metadata.name, metadata.uid, (), labels)
    elif native.generation_observed and native.status.fully_labeled_replicas < native.status.replicas:
        yield LabelPods(metadata.name, metadata.uid, labels)


def _pods_adopted(snapshot: Snapshot, replica_sets: Sequence[Native], requests: dict[str, AdoptionRequest]) -> bool:
    """True once the workload's own object has the pods, so that nothing else leads to a gap in traffic."""
    kinds = {each.native.partition("/")[0] for each in requests.values()}
    if DEPLOYMENT in kinds:
        return _replica_sets_adopted(snapshot, replica_sets, requests)
    return STATEFUL_SET not in kinds or any(each.generation_observed for each in _own(snapshot, STATEFUL_SET))


def _replica_sets_adopted(
    snapshot: Snapshot, replica_sets: Sequence[Native], requests: dict[str, AdoptionRequest]
) -> bool:
    """True once the workload's Deployment has adopted every requested ReplicaSet.

    The kinds of a snapshot may be of different moments, so a ReplicaSet that is missing proves nothing.
    """
    adopted = {each.metadata.uid for each in replica_sets if each.metadata.controller_uid and each.generation_observed}
    requested = {uid for uid, each in requests.items() if each.native.startswith(f"{REPLICA_SET}/")}
    replicas = getattr(snapshot.owner.spec, "replicas", 0)
    return bool(_own(snapshot, DEPLOYMENT)) and (requested <= adopted or replicas == 0)


def _was_changed_since_import(native: Native, requests: dict[str, AdoptionRequest]) -> bool:
    imported = requests[native.metadata.uid].generation
    return native.metadata.generation != imported and not native.metadata.deletion_timestamp


def _conflict(owner: Workload, native: Native, requests: dict[str, AdoptionRequest]) -> Problem:
    name = native.metadata.name
    imported = requests[native.metadata.uid].generation
    return Problem(
        CONFLICT,
        f"{_native_label(native)} was changed after the import, and is not adopted",
        Where(object=owner.metadata.key),
        f"its generation is {native.metadata.generation}, and was {imported}",
        f"pin delete {owner.metadata.name}, which stops no pod; then pin import {native.kind.lower()}/{name} --adopt",
    )


def _native_label(native: Native) -> str:
    return f"{native.kind}/{native.metadata.name}"
