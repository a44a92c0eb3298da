"""Fields that Kubernetes refuses to change in an existing object, and the action taken instead: one table.

Applying a change to such a field fails with 422, and would fail again in every pass. `natives.with_hashes` therefore
stores a hash of these fields on each object. `diff` compares it with the hash of the wanted object: if it differs, the
object is deleted, with or without its pods, and the next pass creates it again. For claims the change is refused,
because deleting a claim deletes data.

Kubeflow's jobs are in the table although their fields can be written. Kubeflow applies a changed template only to the
pods that it creates afterwards, so that one job would train with two programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from pincompute.objects.content import Object


class OnImmutableChange(Enum):
    """Action taken if an immutable field should change."""

    RECREATE = auto()
    """The object is deleted with its pods and created again."""
    RECREATE_AROUND_PODS = auto()
    """The object is deleted without its pods, which the new object adopts."""
    REFUSE = auto()
    """The change is reported as a problem, and the object stays as it is."""


class ImmutableFields(NamedTuple):
    """Immutable fields of the spec of one kind. All its other fields can be changed in place."""

    fields: tuple[str, ...]
    on_change: OnImmutableChange


IMMUTABLE_FIELDS: Mapping[str, ImmutableFields] = MappingProxyType(
    {
        "Deployment": ImmutableFields(("selector",), OnImmutableChange.RECREATE),
        "DaemonSet": ImmutableFields(("selector",), OnImmutableChange.RECREATE),
        "StatefulSet": ImmutableFields(
            ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
            OnImmutableChange.RECREATE_AROUND_PODS,
        ),
        "Job": ImmutableFields(
            (
                "selector",
                "template",
                "completions",
                "completionMode",
                "backoffLimitPerIndex",
                "podFailurePolicy",
                "successPolicy",
            ),
            OnImmutableChange.RECREATE,
        ),
        "PyTorchJob": ImmutableFields(("pytorchReplicaSpecs", "elasticPolicy"), OnImmutableChange.RECREATE),
        "TFJob": ImmutableFields(("tfReplicaSpecs",), OnImmutableChange.RECREATE),
        "PersistentVolumeClaim": ImmutableFields(
            ("accessModes", "storageClassName", "volumeMode"), OnImmutableChange.REFUSE
        ),
    }
)


def immutable_part(native: Object) -> Object | None:
    """Immutable fields of an object; None if its kind has none."""
    immutable = IMMUTABLE_FIELDS.get(native["kind"])
    if immutable is None:
        return None
    spec = native["spec"]
    if "elasticPolicy" in spec:
        # Workers of an elastic job find each other again after each change, so that their number can change in place.
        roles = spec["pytorchReplicaSpecs"].items()
        spec = {**spec, "pytorchReplicaSpecs": {name: {**role, "replicas": 0} for name, role in roles}}
    return {field: spec[field] for field in immutable.fields if field in spec}
