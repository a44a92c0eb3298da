"""What Kubernetes never changes in a native once it is made, and what is done instead: one table."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from pincompute.objects.content import Object


class Instead(Enum):
    """What is done where a fixed field should change."""

    MADE_ANEW = auto()
    """Ended with its pods, and made again."""
    PODS_STAY = auto()
    """Ended without its pods, which the new one takes over."""
    REFUSED = auto()
    """Said, and left as it is."""


class Fixed(NamedTuple):
    fields: tuple[str, ...]
    """Of the spec; all others can be changed in place."""
    instead: Instead


FIXED: dict[str, Fixed] = {
    "Deployment": Fixed(("selector",), Instead.MADE_ANEW),
    "DaemonSet": Fixed(("selector",), Instead.MADE_ANEW),
    "StatefulSet": Fixed(("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"), Instead.PODS_STAY),
    "Job": Fixed(
        (
            "selector",
            "template",
            "completions",
            "completionMode",
            "backoffLimitPerIndex",
            "podFailurePolicy",
            "successPolicy",
        ),
        Instead.MADE_ANEW,
    ),
    # Kubeflow would take them, and give them to those copies only that it makes from then on.
    "PyTorchJob": Fixed(("pytorchReplicaSpecs", "elasticPolicy"), Instead.MADE_ANEW),
    "TFJob": Fixed(("tfReplicaSpecs",), Instead.MADE_ANEW),
    "PersistentVolumeClaim": Fixed(("accessModes", "storageClassName", "volumeMode"), Instead.REFUSED),
}


def fixed_part(native: Object) -> Object | None:
    """Those of its fields that can never change; nothing where there are none."""
    known = FIXED.get(native["kind"])
    if known is None:
        return None
    spec = native["spec"]
    if "elasticPolicy" in spec:
        # Its copies find each other again whenever there are others: how many they are changes where they are.
        roles = spec["pytorchReplicaSpecs"].items()
        spec = {**spec, "pytorchReplicaSpecs": {name: {**each, "replicas": 0} for name, each in roles}}
    return {field: spec[field] for field in known.fields if field in spec}
