"""Gathers what the cluster says of a pod that asks who it is: as it is now, and not as it was last seen."""

from __future__ import annotations

import asyncio

import msgspec

from pincompute.api.names import API_VERSION
from pincompute.controller.resources import NOUNS
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
from pincompute.planning.pods.identity import CHAINS, Bearer, Evidence, Link, Request

_MAKERS = {
    f"{each.api_version} {each.kind}": each
    for each in (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS, PYTORCH_JOBS, TF_JOBS)
}
_LONGEST = max(map(len, CHAINS))


async def gather(client: Client, request: Request) -> Evidence:
    place, asked = request.metadata.namespace, request.spec
    if not request.known:
        return Evidence(None, None)
    pod, account = await asyncio.gather(
        _seen(client, PODS, asked.pod_name, place),
        _seen(client, SERVICE_ACCOUNTS, asked.service_account_name, place),
    )
    if pod is None:
        return Evidence(None, None)
    owners, above = await _climb(client, place, _controller(pod))
    workload = await _workload(client, place, above)
    return Evidence(
        msgspec.convert(pod, Bearer), _link(account), tuple(msgspec.convert(each, Link) for each in owners), workload
    )


async def _climb(client: Client, place: str, reference: Object) -> tuple[list[Object], Object]:
    """All between a pod and its workload that are there, and whom the last of them names as its own controller."""
    owners: list[Object] = []
    while len(owners) < _LONGEST:
        resource = _MAKERS.get(f"{reference.get('apiVersion')} {reference.get('kind')}")
        owner = await _seen(client, resource, reference["name"], place) if resource else None
        if owner is None:
            break
        owners.append(owner)
        reference = _controller(owner)
    return owners, reference


async def _workload(client: Client, place: str, reference: Object) -> Link | None:
    ours = reference.get("apiVersion") == API_VERSION and reference.get("kind") in NOUNS
    return _link(await _seen(client, NOUNS[reference["kind"]], reference["name"], place)) if ours else None


async def _seen(client: Client, resource: Resource, name: str, place: str) -> Object | None:
    try:
        found = await client.get(resource, name, place)
    except NotFound:
        return None
    return {"kind": resource.kind, "apiVersion": resource.api_version, **found}


def _link(value: Object | None) -> Link | None:
    return None if value is None else msgspec.convert(value, Link)


def _controller(value: Object) -> Object:
    references = value["metadata"].get("ownerReferences", ())
    return next((each for each in references if each.get("controller")), {})
