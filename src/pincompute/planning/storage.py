"""The storage of numbered copies: what their claims are made from, and those that exist and should be larger."""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.api.names import KIND, PROJECT, SIZE, WORKLOAD
from pincompute.api.stateful_set import Claim, PinterestStatefulSet
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_CHANGE
from pincompute.objects.content import Object
from pincompute.objects.quantity import amount
from pincompute.planning import names
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import Apply

CLAIM = "PersistentVolumeClaim"


def volumes(owner: PinterestStatefulSet) -> list[Object]:
    """Where the main container sees each of its claims."""
    claims = owner.spec.all_claims
    return [{"name": name, "mountPath": claims[name].path} for name in sorted(claims)]


def templates(owner: PinterestStatefulSet) -> list[Object]:
    """Without a tier: a claim outlives it, and a template can never change."""
    labels = {PROJECT: owner.metadata.namespace, WORKLOAD: owner.metadata.name, KIND: owner.kind}
    claims = owner.spec.all_claims
    return [
        {
            "apiVersion": "v1",
            "kind": CLAIM,
            "metadata": {"name": name, "labels": {**labels}, "annotations": {SIZE: str(claims[name].size)}},
            "spec": {
                "accessModes": [claims[name].access],
                "volumeMode": "Filesystem",
                **({"storageClassName": claims[name].class_} if claims[name].class_ else {}),
                **_size(claims[name]),
            },
        }
        for name in sorted(claims)
    ]


def growing(snapshot: Snapshot) -> tuple[Apply, ...]:
    """A template is for claims to come; those that exist are made larger one by one, where their disks allow it."""
    return tuple(
        Apply(
            {
                "apiVersion": "v1",
                "kind": CLAIM,
                "metadata": {
                    "name": native.metadata.name,
                    "namespace": native.metadata.namespace,
                    "annotations": {SIZE: str(claim.size)},
                },
                "spec": _size(claim),
            },
            native.metadata.uid,
        )
        for native, claim in _others(snapshot)
    )


def shrinking(snapshot: Snapshot) -> tuple[Problem, ...]:
    """What was stored would not fit: nothing is done at all. A size that no disk ever reached can be taken back."""
    return tuple(
        Problem(
            CANNOT_CHANGE,
            f"the claim {native.metadata.name} holds {_held(native)}, and never shrinks to {claim.size}",
            Where(object=f"{native.metadata.namespace}/{snapshot.owner.metadata.name}"),
            next=f"write {_held(native)} again, or a larger size",
        )
        for native, claim in _others(snapshot)
        if amount(claim.size) < min(amount(_held(native)), amount(_asked(native)))
    )


def _others(snapshot: Snapshot) -> Iterator[tuple[Native, Claim]]:
    """The claims that were asked for in another size, with what is asked for now; the order is that of their names."""
    owner: PinterestStatefulSet = snapshot.owner
    claims = owner.spec.all_claims
    for native in sorted(snapshot.natives, key=lambda each: each.metadata.name):
        if native.kind != CLAIM or native.metadata.deletion_timestamp or not _asked(native):
            continue
        claim = claims.get(names.claim_of(owner, native.metadata.name))
        if claim and amount(_asked(native)) != amount(claim.size):
            yield native, claim


def _asked(native: Native) -> str:
    return native.metadata.annotations.get(SIZE, "")


def _held(native: Native) -> int | str:
    return native.status.capacity.get("storage") or _asked(native)


def _size(claim: Claim) -> Object:
    return {"resources": {"requests": {"storage": claim.size}}}
