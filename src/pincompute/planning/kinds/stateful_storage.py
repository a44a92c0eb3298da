"""Storage of stateful replicas: claim templates, and the expansion of existing claims."""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.api.names import KIND_LABEL, PROJECT_LABEL, REQUESTED_SIZE_ANNOTATION, WORKLOAD_LABEL
from pincompute.api.stateful_set import PinterestStatefulSet, StorageClaim
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_CHANGE
from pincompute.objects.content import Object
from pincompute.objects.quantity import parse_quantity
from pincompute.planning import names
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import Apply

CLAIM = "PersistentVolumeClaim"


def claim_mounts(owner: PinterestStatefulSet) -> list[Object]:
    """Volume mounts of the main container."""
    claims = owner.spec.all_claims
    return [{"name": name, "mountPath": claims[name].path} for name in sorted(claims)]


def claim_templates(owner: PinterestStatefulSet) -> list[Object]:
    """Claim templates. They have no tier label: the tier may change, but a template and its claims cannot."""
    labels = {PROJECT_LABEL: owner.metadata.namespace, WORKLOAD_LABEL: owner.metadata.name, KIND_LABEL: owner.kind}
    claims = owner.spec.all_claims
    return [
        {
            "apiVersion": "v1",
            "kind": CLAIM,
            "metadata": {
                "name": name,
                "labels": {**labels},
                "annotations": {REQUESTED_SIZE_ANNOTATION: str(claims[name].size)},
            },
            "spec": {
                "accessModes": [claims[name].access],
                "volumeMode": "Filesystem",
                **({"storageClassName": claims[name].class_} if claims[name].class_ else {}),
                **_size(claims[name]),
            },
        }
        for name in sorted(claims)
    ]


def claim_expansions(snapshot: Snapshot) -> tuple[Apply, ...]:
    """Steps that expand existing claims, because a changed template applies only to new ones."""
    return tuple(
        Apply(
            {
                "apiVersion": "v1",
                "kind": CLAIM,
                "metadata": {
                    "name": native.metadata.name,
                    "namespace": native.metadata.namespace,
                    "annotations": {REQUESTED_SIZE_ANNOTATION: str(claim.size)},
                },
                "spec": _size(claim),
            },
            native.metadata.uid,
        )
        for native, claim in _resized_claims(snapshot)
    )


def claim_shrink_problems(snapshot: Snapshot) -> tuple[Problem, ...]:
    """Refuses smaller claims, because Kubernetes cannot shrink a volume.

    An expansion that the storage could not carry out may be taken back: the volume still has its former size.
    """
    return tuple(
        Problem(
            CANNOT_CHANGE,
            f"claim {native.metadata.name} has {_capacity(native)} and cannot shrink to {claim.size}",
            Where(object=f"{native.metadata.namespace}/{snapshot.owner.metadata.name}"),
            next=f"set its size to {_capacity(native)} or more",
        )
        for native, claim in _resized_claims(snapshot)
        if parse_quantity(claim.size) < min(parse_quantity(_capacity(native)), parse_quantity(_requested(native)))
    )


def _resized_claims(snapshot: Snapshot) -> Iterator[tuple[Native, StorageClaim]]:
    """Existing claims with another requested size than the wanted one, sorted by name."""
    owner: PinterestStatefulSet = snapshot.owner
    claims = owner.spec.all_claims
    for native in sorted(snapshot.natives, key=lambda each: each.metadata.name):
        if native.kind != CLAIM or native.metadata.deletion_timestamp or not _requested(native):
            continue
        claim = claims.get(names.claim_of(owner, native.metadata.name))
        if claim and parse_quantity(_requested(native)) != parse_quantity(claim.size):
            yield native, claim


def _requested(native: Native) -> str:
    return native.metadata.annotations.get(REQUESTED_SIZE_ANNOTATION, "")


def _capacity(native: Native) -> int | str:
    return native.status.capacity.get("storage") or _requested(native)


def _size(claim: StorageClaim) -> Object:
    return {"resources": {"requests": {"storage": claim.size}}}
