"""Builds native objects: what all of them share, and the objects that several kinds become.

A native object is a Kubernetes object that a workload or project becomes. Each function builds one; none has a client.
"""

from __future__ import annotations

from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import (
    API_VERSION,
    COST_CENTRE_ANNOTATION,
    IAM_ROLE_ANNOTATION,
    IMMUTABLE_HASH_ANNOTATION,
    KIND_LABEL,
    OWNER_ANNOTATION,
    PROJECT_LABEL,
    TIER_LABEL,
    WANTED_HASH_ANNOTATION,
    WORKLOAD_LABEL,
)
from pincompute.api.workload import Workload
from pincompute.objects.content import Object, content_hash
from pincompute.objects.number_sets import scaled_value
from pincompute.objects.owners import owner_reference
from pincompute.planning import names
from pincompute.planning.immutable import immutable_part
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.steps import EMPTY_STRING_MAP, StringMap


def selector_labels(owner: CustomResource) -> dict[str, str]:
    return {WORKLOAD_LABEL: owner.metadata.name}


def tracking_labels(owner: Workload) -> dict[str, str]:
    """Labels of all native objects of a workload: project, workload, kind and tier."""
    return {
        PROJECT_LABEL: owner.metadata.namespace,
        WORKLOAD_LABEL: owner.metadata.name,
        KIND_LABEL: owner.kind,
        TIER_LABEL: str(owner.spec.tier),
    }


def build_native(  # noqa: PLR0913  (all parts of a native object)
    snapshot: Snapshot,
    api_version: str,
    kind: str,
    body: Object,
    *,
    name: str = "",
    annotations: StringMap = EMPTY_STRING_MAP,
) -> Object:
    """Build a native object of a workload. `body` has the fields beside the metadata: `spec`, or `data`."""
    owner = snapshot.owner
    metadata = {
        "name": name or owner.metadata.name,
        "namespace": owner.metadata.namespace,
        "labels": tracking_labels(owner),
        "annotations": {**tracking_annotations(snapshot), **annotations},
    }
    return build_owned(owner, api_version, kind, metadata, body)


def build_owned(owner: CustomResource, api_version: str, kind: str, metadata: Object, body: Object) -> Object:
    """Add the owner reference and the hashes, which all native objects have."""
    reference = owner_reference(API_VERSION, owner.kind, owner.metadata.name, owner.metadata.uid)
    return with_hashes(
        {"apiVersion": api_version, "kind": kind, "metadata": {**metadata, "ownerReferences": [reference]}, **body}
    )


def tracking_annotations(snapshot: Snapshot) -> dict[str, str]:
    """Owner and cost centre of a workload; the project's owner is the default."""
    owner, project = snapshot.owner, snapshot.project
    owner_name = owner.spec.owner or (project.spec.owner if project else "")
    return owner_annotations(owner_name, project.spec.cost_centre if project else "")


def owner_annotations(owner: str, cost_centre: str) -> dict[str, str]:
    """Annotations rather than labels, because the values may be too long for labels or have other characters."""
    return {name: value for name, value in ((OWNER_ANNOTATION, owner), (COST_CENTRE_ANNOTATION, cost_centre)) if value}


def with_hashes(native: Object) -> Object:
    """Add hashes of the content and of its immutable part, with which `diff` compares it in later passes."""
    annotations = native["metadata"].setdefault("annotations", {})
    immutable = immutable_part(native)
    if immutable is not None:
        annotations[IMMUTABLE_HASH_ANNOTATION] = content_hash(immutable)
    annotations[WANTED_HASH_ANNOTATION] = content_hash(native)
    return native


def service_account(snapshot: Snapshot) -> Object:
    """ServiceAccount of the workload alone. Pods that need a token must request one: none is mounted by default."""
    role = snapshot.owner.spec.iam_role
    annotations = {IAM_ROLE_ANNOTATION: role} if role else {}
    body = {"automountServiceAccountToken": False}
    return build_native(snapshot, "v1", "ServiceAccount", body, annotations=annotations)


def configuration_files(snapshot: Snapshot) -> tuple[Object, ...]:
    """ConfigMap with the configuration files, if there are any."""
    files = snapshot.owner.spec.configuration
    if not files:
        return ()
    name = names.configuration(snapshot.owner)
    return (build_native(snapshot, "v1", "ConfigMap", {"immutable": True, "data": files}, name=name),)


def headless_service(snapshot: Snapshot, ports: list[Object], annotations: StringMap = EMPTY_STRING_MAP) -> Object:
    """Service without an address of its own: it gives each pod a DNS name."""
    spec = {
        "clusterIP": "None",
        "selector": selector_labels(snapshot.owner),
        "ports": ports,
        "publishNotReadyAddresses": True,
    }
    return build_native(snapshot, "v1", "Service", {"spec": spec}, annotations=annotations)


def disruption_budget(snapshot: Snapshot, unavailable: int | str) -> tuple[Object, ...]:
    """PodDisruptionBudget; none where it would let every replica be evicted at once, as of one replica at 25%."""
    replicas = snapshot.owner.spec.replicas
    if scaled_value(unavailable, replicas, up=True) >= replicas:
        return ()
    spec = {
        "selector": {"matchLabels": selector_labels(snapshot.owner)},
        "maxUnavailable": unavailable,
        # A pod that is not ready serves no request. With the default policy, a crashing pod could block the eviction
        # that replaces it, and the drain of its node.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return (build_native(snapshot, "policy/v1", "PodDisruptionBudget", {"spec": spec}),)
