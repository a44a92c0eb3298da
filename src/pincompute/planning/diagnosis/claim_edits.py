"""A claim in the place of one that is missing or that no volume meets, as a command that creates it.

The spec of a claim cannot be changed. A claim that is not bound has no data, so that it can be replaced: the same
claim with the class, size and access modes that the cluster has. A claim that is bound is never replaced.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from difflib import get_close_matches

from pincompute.objects.content import Object
from pincompute.objects.label_selector import selector_matches
from pincompute.objects.quantity import format_bytes
from pincompute.planning.diagnosis.claims import NO_PROVISIONER, Claim, StorageClass, StorageEvidence, Volume

_DEFAULT_SIZE = "1Gi"
"""Size of a claim that is missing: nothing tells how much the program needs."""


def create_claim_command(project: str, name: str, evidence: StorageEvidence) -> str:
    """The command that creates a missing claim; empty if no class of the cluster makes volumes."""
    class_name = _class_that_provisions(evidence.classes, "")
    if not class_name:
        return ""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": _DEFAULT_SIZE}}}
    return _command("create", project, name, {**spec, "storageClassName": class_name})


def replace_claim_command(claim: Claim, evidence: StorageEvidence) -> str:
    """The command that replaces a claim which is not bound by one that can be; empty if nothing could be changed."""
    wanted = claim.spec
    class_name = evidence.class_of(claim)
    spec: Object = {
        "accessModes": wanted.access_modes,
        "resources": {"requests": {"storage": format_bytes(claim.size)}},
        "volumeMode": wanted.volume_mode,
    }
    if volume := _nearest_volume(claim, class_name, evidence):
        spec |= {"storageClassName": volume.spec.storage_class_name, "volumeMode": volume.spec.volume_mode}
        if not set(wanted.access_modes) <= set(volume.spec.access_modes):
            spec["accessModes"] = volume.spec.access_modes
        spec["resources"] = {"requests": {"storage": format_bytes(min(claim.size, volume.size))}}
    else:
        other = _class_that_provisions(evidence.classes, class_name or "")
        if not other or any(each.is_default and each.metadata.name == class_name for each in evidence.classes):
            return ""
        spec["storageClassName"] = other
    return _command("replace --force", claim.metadata.namespace, claim.metadata.name, spec)


def _nearest_volume(claim: Claim, class_name: str | None, evidence: StorageEvidence) -> Volume | None:
    """The free volume of the class that meets most demands of the claim, and of these the largest."""
    if class_name is None:
        return None
    free = [
        each
        for each in evidence.volumes
        if each.spec.storage_class_name == class_name and each.status.phase == "Available" and not each.spec.claim_ref
    ]

    def fit(volume: Volume) -> tuple[int, object, str]:
        met = (
            set(claim.spec.access_modes) <= set(volume.spec.access_modes),
            claim.spec.volume_mode == volume.spec.volume_mode,
            selector_matches(claim.spec.selector, volume.metadata.labels),
            claim.size <= volume.size,
        )
        return sum(met), volume.size, volume.metadata.name

    return max(free, key=fit, default=None)


def _class_that_provisions(classes: Sequence[StorageClass], instead_of: str) -> str:
    """The class with the most similar name, or else the default one, or the only one; empty if there is no other."""
    others = {each.metadata.name: each for each in classes if each.provisioner != NO_PROVISIONER}
    others.pop(instead_of, None)
    default = next((name for name, each in others.items() if each.is_default), "")
    similar = get_close_matches(instead_of, sorted(others), n=1)
    return similar[0] if similar else default or (next(iter(others)) if len(others) == 1 else "")


def _command(verb: str, project: str, name: str, spec: Object) -> str:
    metadata = {"name": name, "namespace": project}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    return f"echo {shlex.quote(json.dumps(claim))} | kubectl {verb} -f -"
