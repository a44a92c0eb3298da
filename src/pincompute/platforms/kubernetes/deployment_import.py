"""Imports existing objects: reads them, asks for the adoption of a Deployment and waits for the operator.

An import never restarts a pod. The client labels the existing objects and creates the workload with the list of objects
to adopt; from there on the operator does the work. A client that is interrupted may simply run the import again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from pincompute.api.change import IMPORTED_PAUSE
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import ADOPTION_ANNOTATION, CLI_MANAGER, WORKLOAD_LABEL
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import ADOPTION_IN_PROGRESS, CANNOT_IMPORT, CONFLICT, DOCUMENT_INVALID, NOT_OWNED
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INGRESSES,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TF_JOBS,
    Object,
    Resource,
)
from pincompute.objects.content import object_label
from pincompute.objects.owners import controller_uid
from pincompute.planning.migration.adoption import adoption_annotation
from pincompute.planning.migration.related_objects import RelatedObjects, config_map_names, pod_template_of
from pincompute.planning.migration.workload_import import WorkloadImport
from pincompute.platforms.kubernetes.changes import manifest_of

_NATIVES = {
    each.kind: each for each in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, CRON_JOBS, JOBS, PYTORCH_JOBS, TF_JOBS)
}
"""Kinds that can be imported."""
_MAX_NAMES = 20
_RELATED_KINDS = (SERVICES, INGRESSES, POD_DISRUPTION_BUDGETS, HORIZONTAL_POD_AUTOSCALERS, SERVICE_ACCOUNTS)
_ADOPTION_TIMEOUT_S = 120.0
"""Longer than a running operator needs to adopt everything."""
_POLL_INTERVAL_S = 0.5
_BLOCKED_AFTER_S = 15.0
"""A blocking condition is believed only after this time: at first it may stem from a stale cache of the operator."""
_BLOCKING_REASONS = {each.code for each in (NOT_OWNED, CONFLICT, DOCUMENT_INVALID)}


async def read_native(client: Client, kind: str, namespace: str, name: str) -> RelatedObjects:
    """Reads an object with the objects of its namespace that select its pods or that it refers to."""
    resource = _NATIVES[kind]
    native = await _get_or_none(client, resource, name, namespace)
    if native is None:
        names = sorted(each["metadata"]["name"] for each in await _list_if_served(client, resource, namespace))
        note = f"{kind}s there: {', '.join(names[:_MAX_NAMES])}" if names else f"the namespace has no {kind}"
        what = f"there is no {kind} '{name}' in {namespace}"
        raise Refused(Problem(CANNOT_IMPORT, what, note=note, next="for another namespace: --project NAMESPACE"))
    listings = await asyncio.gather(*(client.list(each, namespace) for each in _RELATED_KINDS))
    native = _with_kind(native, resource)
    files = dict.fromkeys(config_map_names(pod_template_of(native)))
    named = await asyncio.gather(*(_get_or_none(client, CONFIG_MAPS, each, namespace) for each in files))
    others = [
        *(
            _with_kind(each, resource)
            for resource, found in zip(_RELATED_KINDS, listings, strict=True)
            for each in found.items
        ),
        *(_with_kind(each, CONFIG_MAPS) for each in named if each),
    ]
    return RelatedObjects.of(native, others)


async def read_namespace(client: Client, namespace: str) -> list[Object]:
    """Reads all objects of a namespace that an import uses. Secrets are not among them."""
    resources = (*_NATIVES.values(), *_RELATED_KINDS, CONFIG_MAPS)
    listings = await asyncio.gather(*(_list_if_served(client, each, namespace) for each in resources))
    return [_with_kind(each, resource) for resource, found in zip(resources, listings, strict=True) for each in found]


async def _list_if_served(client: Client, resource: Resource, namespace: str) -> list[Object]:
    """The objects; none of a kind that the cluster does not serve, such as those of Kubeflow."""
    try:
        return list((await client.list(resource, namespace)).items)
    except NotFound:
        return []


def require_rolled_out(found: RelatedObjects) -> None:
    """Refuses an object during a rollout: it would be unclear which of its replicas to keep."""
    spec, status = found.native["spec"], found.native.get("status", {})
    metadata = found.native["metadata"]
    if found.native["kind"] == CRON_JOBS.kind:
        return
    # A partition may hold back replicas of a StatefulSet for ever.
    updated = (
        status.get("updatedReplicas", 0) if found.native["kind"] == DEPLOYMENTS.kind else status.get("replicas", 0)
    )
    counts = {status.get("replicas", 0), updated, spec.get("replicas", 1)}
    if status.get("observedGeneration", 0) < metadata["generation"] or len(counts) > 1:
        what = f"{object_label(found.native)} is being rolled out"
        note = f"{status.get('updatedReplicas', 0)} of {spec.get('replicas', 1)} replicas are of its newest revision"
        kind = found.native["kind"].lower()
        next_ = f"kubectl rollout status {kind}/{found.name} --namespace {found.namespace}, then again"
        raise Refused(Problem(CANNOT_IMPORT, what, Where(object=f"{found.namespace}/{found.name}"), note, next_))


async def request_adoption(client: Client, import_: WorkloadImport) -> None:
    """Labels the objects with the workload's name and creates the workload, which lists them for adoption.

    No running pod is affected, and every step can be repeated after an interruption.
    """
    metadata = import_.workload.metadata
    await _require_free_name(client, metadata.namespace, metadata.name)
    sets = [_with_kind(each, REPLICA_SETS) for each in await _controlled(client, REPLICA_SETS, import_.adopted[0])]
    active_sets = [each for each in sets if each["spec"].get("replicas", 1)]
    for each in (*sets, *import_.adopted):
        resource = REPLICA_SETS if each["kind"] == REPLICA_SETS.kind else WORKLOAD_NATIVES[each["kind"]]
        named = each["metadata"]
        body = {"metadata": {"uid": named["uid"], "labels": {WORKLOAD_LABEL: metadata.name}}}
        await client.patch(resource, named["name"], named["namespace"], body, style="merge", manager=CLI_MANAGER)
    workload = _workload_to_create(import_, active_sets)
    await client.create(CUSTOM_RESOURCES[workload.kind], manifest_of(workload), manager=CLI_MANAGER)


async def wait_until_adopted(client: Client, import_: WorkloadImport) -> None:
    """Returns when the workload controls all adopted objects; refuses if the adoption is blocked or takes too long."""
    metadata = import_.workload.metadata
    began = client.clock.monotonic()
    while left := [each async for each in _not_adopted(client, import_)]:
        waited_s = client.clock.monotonic() - began
        message = await _blocking_message(client, import_) if waited_s > _BLOCKED_AFTER_S else ""
        if message or waited_s > _ADOPTION_TIMEOUT_S:
            what = f"{metadata.key} has not adopted {', '.join(left)}"
            note = message or "running pods are not affected; the operator continues with the adoption"
            raise Refused(Problem(ADOPTION_IN_PROGRESS, what, note=note, next=f"pin show {metadata.name}"))
        await asyncio.sleep(_POLL_INTERVAL_S)


async def _controlled(client: Client, resource: Resource, native: Object) -> list[Object]:
    """The objects that a native controls."""
    metadata = native["metadata"]
    found = (await client.list(resource, metadata["namespace"])).items
    return [each for each in found if controller_uid(each) == metadata["uid"]]


def _workload_to_create(import_: WorkloadImport, active_sets: list[Object]) -> Workload:
    """The workload of the file with its rollout paused: the existing replicas stay until a user resumes it."""
    workload: Any = import_.workload
    rollout = getattr(workload.spec, "rollout", None)
    paused = {"rollout": msgspec.structs.replace(rollout, paused=IMPORTED_PAUSE)} if rollout else {}
    workload = msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **paused))
    return msgspec.structs.replace(
        workload,
        metadata=msgspec.structs.replace(
            workload.metadata, annotations={ADOPTION_ANNOTATION: adoption_annotation((*import_.adopted, *active_sets))}
        ),
    )


async def _require_free_name(client: Client, namespace: str, name: str) -> None:
    existing = await asyncio.gather(
        *(_get_or_none(client, CUSTOM_RESOURCES[kind], name, namespace) for kind in WORKLOADS)
    )
    if any(existing):
        what = f"{namespace} has a workload '{name}' already"
        raise Refused(Problem(CONFLICT, what, next=f"pin show {name} --project {namespace}, or --as OTHER"))


async def _blocking_message(client: Client, import_: WorkloadImport) -> str:
    """The message of a condition that blocks the adoption, or an empty string."""
    metadata = import_.workload.metadata
    found = await client.get(CUSTOM_RESOURCES[import_.workload.kind], metadata.name, metadata.namespace)
    conditions = found.get("status", {}).get("conditions", ())
    return next((each["message"] for each in conditions if each["reason"] in _BLOCKING_REASONS), "")


async def _not_adopted(client: Client, import_: WorkloadImport) -> AsyncIterator[str]:
    """Labels of the objects that the workload does not control yet."""
    metadata = import_.workload.metadata
    workload = await client.get(CUSTOM_RESOURCES[import_.workload.kind], metadata.name, metadata.namespace)
    for each in import_.adopted:
        named = each["metadata"]
        found = await _get_or_none(client, WORKLOAD_NATIVES[each["kind"]], named["name"], named["namespace"])
        if found and found["metadata"]["uid"] == named["uid"] and controller_uid(found) != workload["metadata"]["uid"]:
            yield object_label(each)
    kind = import_.adopted[0]["kind"]
    own = await _get_or_none(client, WORKLOAD_NATIVES[kind], metadata.name, metadata.namespace)
    if own is None or controller_uid(own) != workload["metadata"]["uid"]:
        yield f"{kind}/{metadata.name}"


async def _get_or_none(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None


def _with_kind(item: Object, resource: Resource) -> Object:
    """Adds the kind, which the items of a list response lack."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}
