"""Who owns an object: Kubernetes removes what is owned when its owner goes."""

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
    """The uid of the one owner that controls this object; empty where nobody does."""
    references = value["metadata"].get("ownerReferences", ())
    return next((reference["uid"] for reference in references if reference.get("controller")), "")
