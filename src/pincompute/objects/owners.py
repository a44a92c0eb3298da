"""Owner references: Kubernetes deletes an object when its owner is deleted."""

from __future__ import annotations

from pincompute.objects.content import Object


def owner_reference(api_version: str, kind: str, name: str, uid: str) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(value: Object) -> str:
    """UID of the controlling owner; empty if there is none."""
    references = value["metadata"].get("ownerReferences", ())
    return next((reference["uid"] for reference in references if reference.get("controller")), "")
