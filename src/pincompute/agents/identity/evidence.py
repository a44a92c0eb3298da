"""Reads the objects that prove the identity of a pod: directly from the API server, because a cache could be stale."""

from __future__ import annotations

import asyncio

import msgspec

from pincompute.api.names import API_VERSION
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    TF_JOBS,
    Object,
    Resource,
)
from pincompute.planning.pods.certificate_approval import (
    OWNER_CHAINS,
    IdentityPod,
    OwnedObject,
    PodCertificateRequest,
    RequestEvidence,
)

_OWNER_RESOURCES = {
    f"{each.api_version} {each.kind}": each
    for each in (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS, PYTORCH_JOBS, TF_JOBS)
}
_MAX_OWNERS = max(map(len, OWNER_CHAINS))


async def gather_evidence(client: Client, request: PodCertificateRequest) -> RequestEvidence:
    """The pod of a request, its service account, its owners and its workload, as far as they exist."""
    namespace, spec = request.metadata.namespace, request.spec
    if not request.identifies_pod:
        return RequestEvidence(None, None)
    pod, account = await asyncio.gather(
        _get_or_none(client, PODS, spec.pod_name, namespace),
        _get_or_none(client, SERVICE_ACCOUNTS, spec.service_account_name, namespace),
    )
    if pod is None:
        return RequestEvidence(None, None)
    owners, topmost = await _collect_owners(client, namespace, _controller_reference(pod))
    workload = await _get_workload(client, namespace, topmost)
    return RequestEvidence(
        msgspec.convert(pod, IdentityPod),
        _owned_object(account),
        tuple(msgspec.convert(each, OwnedObject) for each in owners),
        workload,
    )


async def _collect_owners(client: Client, namespace: str, reference: Object) -> tuple[list[Object], Object]:
    """Existing owners between a pod and its workload, and the controller reference of the last one."""
    owners: list[Object] = []
    while len(owners) < _MAX_OWNERS:
        resource = _OWNER_RESOURCES.get(f"{reference.get('apiVersion')} {reference.get('kind')}")
        owner = await _get_or_none(client, resource, reference["name"], namespace) if resource else None
        if owner is None:
            break
        owners.append(owner)
        reference = _controller_reference(owner)
    return owners, reference


async def _get_workload(client: Client, namespace: str, reference: Object) -> OwnedObject | None:
    if reference.get("apiVersion") != API_VERSION or reference.get("kind") not in CUSTOM_RESOURCES:
        return None
    resource = CUSTOM_RESOURCES[reference["kind"]]
    return _owned_object(await _get_or_none(client, resource, reference["name"], namespace))


async def _get_or_none(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        found = await client.get(resource, name, namespace)
    except NotFound:
        return None
    return {"kind": resource.kind, "apiVersion": resource.api_version, **found}


def _owned_object(value: Object | None) -> OwnedObject | None:
    return None if value is None else msgspec.convert(value, OwnedObject)


def _controller_reference(value: Object) -> Object:
    references = value["metadata"].get("ownerReferences", ())
    return next((each for each in references if each.get("controller")), {})
