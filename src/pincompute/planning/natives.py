"""What all natives share, and those that many kinds become; one function makes one, and none holds a client."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pincompute.api.names import API_VERSION, COST_CENTRE, FIXED, IAM_ROLE, KIND, OWNER, PROJECT, TIER, WANTED, WORKLOAD
from pincompute.api.noun import Noun
from pincompute.api.workload import Workload
from pincompute.objects.content import Object, digest
from pincompute.objects.owners import owner_reference
from pincompute.planning import names
from pincompute.planning.fixed import fixed_part
from pincompute.planning.snapshot import Snapshot

Strings = Mapping[str, str]
EMPTY: Strings = MappingProxyType({})


def selector(owner: Noun) -> dict[str, str]:
    return {WORKLOAD: owner.metadata.name}


def labels(owner: Workload) -> dict[str, str]:
    """Whose it is and what it may use: on everything that a workload becomes."""
    return {
        PROJECT: owner.metadata.namespace,
        WORKLOAD: owner.metadata.name,
        KIND: owner.kind,
        TIER: str(owner.spec.tier),
    }


def native(  # noqa: PLR0913  (what is said of every native, once)
    snapshot: Snapshot, api_version: str, kind: str, body: Object, *, name: str = "", annotations: Strings = EMPTY
) -> Object:
    """One of a workload's; `body` is what stands beside the metadata, as a ConfigMap has no `spec`."""
    owner = snapshot.owner
    metadata = {
        "name": name or owner.metadata.name,
        "namespace": owner.metadata.namespace,
        "labels": labels(owner),
        "annotations": {**tracking(snapshot), **annotations},
    }
    return owned(owner, api_version, kind, metadata, body)


def owned(owner: Noun, api_version: str, kind: str, metadata: Object, body: Object) -> Object:
    """What every native has, whatever it was made for: its owner, and the digests."""
    reference = owner_reference(API_VERSION, owner.kind, owner.metadata.name, owner.metadata.uid)
    return signed(
        {"apiVersion": api_version, "kind": kind, "metadata": {**metadata, "ownerReferences": [reference]}, **body}
    )


def tracking(snapshot: Snapshot) -> dict[str, str]:
    """Who answers for a workload, and who pays."""
    owner, project = snapshot.owner, snapshot.project
    whose = owner.spec.owner or (project.spec.owner if project else "")
    return tracked(whose, project.spec.cost_centre if project else "")


def tracked(owner: str, cost_centre: str) -> dict[str, str]:
    """What cannot be a label, or would be too long for one."""
    return {name: value for name, value in ((OWNER, owner), (COST_CENTRE, cost_centre)) if value}


def signed(made: Object) -> Object:
    """With the digests by which a later pass sees that nothing has changed, or that it can only be replaced."""
    annotations = made["metadata"].setdefault("annotations", {})
    part = fixed_part(made)
    if part is not None:
        annotations[FIXED] = digest(part)
    annotations[WANTED] = digest(made)
    return made


def service_account(snapshot: Snapshot) -> Object:
    """The identity that its pods have, and nobody else's; tokens are only made for those who ask."""
    role = snapshot.owner.spec.iam_role
    annotations = {IAM_ROLE: role} if role else {}
    body = {"automountServiceAccountToken": False}
    return native(snapshot, "v1", "ServiceAccount", body, annotations=annotations)


def configuration(snapshot: Snapshot) -> tuple[Object, ...]:
    """The files, where there are any."""
    files = snapshot.owner.spec.configuration
    if not files:
        return ()
    name = names.configuration(snapshot.owner)
    return (native(snapshot, "v1", "ConfigMap", {"immutable": True, "data": files}, name=name),)


def headless_service(snapshot: Snapshot, ports: list[Object]) -> Object:
    """A DNS name for each pod."""
    spec = {
        "clusterIP": "None",
        "selector": selector(snapshot.owner),
        "ports": ports,
        "publishNotReadyAddresses": True,
    }
    return native(snapshot, "v1", "Service", {"spec": spec})


def disruption_budget(snapshot: Snapshot, unavailable: int | str) -> Object:
    spec = {
        "selector": {"matchLabels": selector(snapshot.owner)},
        "maxUnavailable": unavailable,
        # Whom nobody asks can be missed: otherwise one that crashes could neither be replaced nor its node be emptied.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return native(snapshot, "policy/v1", "PodDisruptionBudget", {"spec": spec})
