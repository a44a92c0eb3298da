"""Reads what belongs to a Deployment, and brings it to where a workload takes it over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from pincompute.api.change import AS_FOUND
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import ADOPTS, HAND, WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CANNOT_IMPORT, CHANGED_MEANWHILE, DOCUMENT_INVALID, NOT_OURS, TAKING_OVER
from pincompute.controller.amend import resource_of
from pincompute.controller.resources import NATIVES, NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    REPLICA_SETS,
    SCALERS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Object,
    Resource,
)
from pincompute.objects.content import identity
from pincompute.objects.owners import controller_uid
from pincompute.planning.adoption import asking
from pincompute.planning.importing import Found, Imported
from pincompute.planning.importing.found import files_of

_BESIDE = (SERVICES, INGRESSES, DISRUPTION_BUDGETS, SCALERS, SERVICE_ACCOUNTS)
_PATIENCE = 120.0
"""Seconds in which an operator that runs has taken over what there is."""
_LOOK = 0.5
_SETTLING = 15.0
"""Seconds in which what stands in the way may have been a view that lagged behind."""
_IN_THE_WAY = {each.code for each in (NOT_OURS, CHANGED_MEANWHILE, DOCUMENT_INVALID)}


async def look(client: Client, namespace: str, name: str) -> Found:
    """The Deployment, and of its namespace what leads to it or is named by it."""
    deployment = await _get(client, DEPLOYMENTS, name, namespace)
    if deployment is None:
        there = sorted(each["metadata"]["name"] for each in (await client.list(DEPLOYMENTS, namespace)).items)
        note = f"there are {', '.join(there)}" if there else "there is none at all"
        what = f"there is no Deployment '{name}' in {namespace}"
        raise Refused(Problem(CANNOT_IMPORT, what, note=note, next="--project NAMESPACE, if you meant another"))
    listings = await asyncio.gather(*(client.list(each, namespace) for each in _BESIDE))
    files = dict.fromkeys(files_of(deployment["spec"]["template"]))
    named = await asyncio.gather(*(_get(client, CONFIG_MAPS, each, namespace) for each in files))
    others = [
        *(_whole(each, resource) for resource, found in zip(_BESIDE, listings, strict=True) for each in found.items),
        *(_whole(each, CONFIG_MAPS) for each in named if each),
    ]
    return Found.of(_whole(deployment, DEPLOYMENTS), others)


def settled(found: Found) -> None:
    """Refused while it is being rolled out: which copies were to stay could not be said."""
    spec, status = found.deployment["spec"], found.deployment.get("status", {})
    metadata = found.deployment["metadata"]
    counts = {status.get("replicas", 0), status.get("updatedReplicas", 0), spec.get("replicas", 1)}
    if status.get("observedGeneration", 0) < metadata["generation"] or len(counts) > 1:
        what = f"{identity(found.deployment)} is being rolled out"
        note = f"{status.get('updatedReplicas', 0)} of {spec.get('replicas', 1)} copies are of its newest making"
        next_ = f"kubectl rollout status deployment/{found.name} --namespace {found.namespace}, then again"
        raise Refused(Problem(CANNOT_IMPORT, what, Where(object=f"{found.namespace}/{found.name}"), note, next_))


async def hand_over(client: Client, done: Imported) -> None:
    """The natives bear the workload's name, and the workload names the natives: the operator does the rest.

    Whoever is ended in between has changed nothing that runs, and does the same once more.
    """
    metadata = done.workload.metadata
    await _must_be_free(client, metadata.namespace, metadata.name)
    deployment = done.taken[0]
    sets = [
        _whole(each, REPLICA_SETS)
        for each in (await client.list(REPLICA_SETS, metadata.namespace)).items
        if controller_uid(each) == deployment["metadata"]["uid"]
    ]
    making = [each for each in sets if each["spec"].get("replicas", 1)]
    for each in (*sets, *done.taken):
        resource = REPLICA_SETS if each["kind"] == REPLICA_SETS.kind else NATIVES[each["kind"]]
        named = each["metadata"]
        body = {"metadata": {"uid": named["uid"], "labels": {WORKLOAD: metadata.name}}}
        await client.patch(resource, named["name"], named["namespace"], body, style="merge", manager=HAND)
    workload = _held(done, making)
    await client.create(NOUNS[workload.kind], resource_of(workload), manager=HAND)


async def taken_over(client: Client, done: Imported) -> None:
    """Return when all of it is the workload's, with its copies as they were."""
    metadata = done.workload.metadata
    begun = client.clock.monotonic()
    while left := [each async for each in _left(client, done)]:
        waited = client.clock.monotonic() - begun
        told = await _told(client, done) if waited > _SETTLING else ""
        if told or waited > _PATIENCE:
            what = f"{metadata.place} has not taken over {', '.join(left)}"
            note = told or "what runs goes on as it is, and the operator goes on with it"
            raise Refused(Problem(TAKING_OVER, what, note=note, next=f"pin show {metadata.name}"))
        await asyncio.sleep(_LOOK)


def _held(done: Imported, making: list[Object]) -> PinterestService:
    """As its file says, but for its copies, which stay as they were found until somebody asks for others."""
    workload = done.workload
    rollout = msgspec.structs.replace(workload.spec.rollout, paused=AS_FOUND)
    return msgspec.structs.replace(
        workload,
        metadata=msgspec.structs.replace(workload.metadata, annotations={ADOPTS: asking((*done.taken, *making))}),
        spec=msgspec.structs.replace(workload.spec, rollout=rollout),
    )


async def _must_be_free(client: Client, namespace: str, name: str) -> None:
    there = await asyncio.gather(*(_get(client, NOUNS[kind], name, namespace) for kind in WORKLOADS))
    if any(there):
        what = f"{namespace} has a workload '{name}' already"
        raise Refused(Problem(CHANGED_MEANWHILE, what, next=f"pin show {name} --project {namespace}, or --as OTHER"))


async def _told(client: Client, done: Imported) -> str:
    """What stands in the way, as the workload's own status tells it."""
    metadata = done.workload.metadata
    found = await client.get(NOUNS[done.workload.kind], metadata.name, metadata.namespace)
    conditions = found.get("status", {}).get("conditions", ())
    return next((each["message"] for each in conditions if each["reason"] in _IN_THE_WAY), "")


async def _left(client: Client, done: Imported) -> AsyncIterator[str]:
    """What is still somebody else's, and what makes copies and does not bear the workload's labels on all of them."""
    metadata = done.workload.metadata
    workload = await client.get(NOUNS[done.workload.kind], metadata.name, metadata.namespace)
    for each in done.taken:
        named = each["metadata"]
        found = await _get(client, NATIVES[each["kind"]], named["name"], named["namespace"])
        if found and found["metadata"]["uid"] == named["uid"] and controller_uid(found) != workload["metadata"]["uid"]:
            yield identity(each)
    deployment = await _get(client, DEPLOYMENTS, metadata.name, metadata.namespace)
    if deployment is None or controller_uid(deployment) != workload["metadata"]["uid"]:
        yield f"Deployment/{metadata.name}"


async def _get(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None


def _whole(item: Object, resource: Resource) -> Object:
    """Items of a list do not say what they are."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}
