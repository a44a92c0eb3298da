"""Turns steps into requests to the API server. A step is complete: nothing is decided here.

Two passes may plan the same step, because a response was lost or the operator restarted in between. Every step is
therefore idempotent: it carries the uid of the object it was planned for, and an object that is already gone is no
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from pincompute.api.names import OPERATOR
from pincompute.base.problem import Refused
from pincompute.controller.adopt import adopt, label_patches, label_pods
from pincompute.controller.field_ownership import conflict_from_not_found, record_create_as_apply
from pincompute.controller.resources import ALL_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from pincompute.kube.resource import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from pincompute.objects.content import Object
from pincompute.objects.field_managers import ForeignEdit, foreign_edits
from pincompute.objects.owners import controller_uid
from pincompute.objects.restored_content import restoring_patch
from pincompute.planning.diff import not_ours_problem
from pincompute.planning.snapshot import PLATFORM_FIELD_MANAGERS
from pincompute.planning.steps import (
    Adopt,
    Apply,
    Create,
    Delete,
    Evict,
    LabelPods,
    PatchImages,
    SidecarImage,
    Step,
    Ungate,
)

_OFTEN_EDITED = frozenset({DEPLOYMENTS.kind, STATEFUL_SETS.kind, DAEMON_SETS.kind, CRON_JOBS.kind})
"""Kinds that are created by an apply. It costs the API server more than a POST, and their first edit less."""
_RESOURCE_VERSION_OF_NOTHING = "1"
"""An apply with a resourceVersion creates a missing object, and is a conflict with one of another resourceVersion."""


async def apply_step(client: Client, namespace: str, step: Step) -> Object | None:
    """Executes one step and returns the object as the server answered it, or None if no object remains."""
    match step:
        case Create(native):
            return await _create_native(client, native)
        case Apply(native, uid, applied):
            return await _apply_native(client, native, uid, only_applied=applied)
        case Adopt(native, uid):
            return await adopt(client, ALL_NATIVES[native["kind"]], native, uid)
        case PatchImages():
            return await _patch_images(client, namespace, step)
        case LabelPods(_, uid, labels):
            await label_pods(client, namespace, uid, labels)
        case Delete():
            return await _delete_native(client, namespace, step)
        case Evict(pod, uid):
            await _evict_pod(client, namespace, pod, uid)
        case Ungate():
            await _ungate_pod(client, namespace, step)
    return None


async def _create_native(client: Client, native: Object) -> Object:
    """Creates without a merge into an existing object, which may belong to another owner."""
    resource, metadata = ALL_NATIVES[native["kind"]], native["metadata"]
    try:
        if native["kind"] in _OFTEN_EDITED:
            absent = {**native, "metadata": {**metadata, "resourceVersion": _RESOURCE_VERSION_OF_NOTHING}}
            return await client.apply(absent, resource, manager=OPERATOR)
        return await client.create(resource, native, manager=OPERATOR)
    except (AlreadyExists, Conflict):
        try:
            found = await client.get(resource, metadata["name"], metadata.get("namespace", ""))
        except NotFound as error:
            raise conflict_from_not_found(error) from error
        if controller_uid(found) != controller_uid(native):
            raise Refused(not_ours_problem(native)) from None
        # The object is ours: an earlier pass created it and lost the response, or its label, by which the cache finds
        # it, was removed.
        return await _apply_native(client, native, found["metadata"]["uid"])


async def _apply_native(client: Client, native: Object, uid: str, *, only_applied: bool = False) -> Object:
    """Server-side apply with the uid as precondition: an object recreated under the same name is not touched."""
    resource = ALL_NATIVES[native["kind"]]
    metadata = native["metadata"]
    try:
        if not only_applied:
            found = await client.get(resource, metadata["name"], metadata.get("namespace", ""))
            await record_create_as_apply(client, resource, found, manager=OPERATOR)
    except NotFound as error:
        raise conflict_from_not_found(error) from error
    with_uid = {**native, "metadata": {**metadata, "uid": uid}}
    try:
        return await client.apply(with_uid, resource, manager=OPERATOR)
    except Invalid:
        # Our fields may be valid, and invalid only together with those that another manager has added.
        found = await client.get(resource, metadata["name"], metadata.get("namespace", ""))
        edits = foreign_edits(found, native, OPERATOR, PLATFORM_FIELD_MANAGERS)
        if found["metadata"]["uid"] != uid or not any(each.pointer for each in edits):
            raise
        await restore_content(client, resource, found, native, edits)
        return await client.apply(with_uid, resource, manager=OPERATOR)


async def restore_content(
    client: Client, resource: Resource, found: Object, wanted: Object, edits: Sequence[ForeignEdit]
) -> None:
    """Removes what other managers have added, and sets what is wanted, in one write. An apply has to follow."""
    name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace", "")
    body = restoring_patch(found, wanted, [each.pointer for each in edits if each.pointer])
    try:
        await client.patch(resource, name, namespace, body, style="json", manager=OPERATOR)
    except NotFound as error:
        raise conflict_from_not_found(error) from error
    except Invalid as error:
        # A failed `test` operation is answered as 422 Invalid, too.
        now = await client.get(resource, name, namespace)
        if now["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]:
            raise
        raise Conflict(409, "Conflict", "the object was modified in between", about=error.about) from error


async def _delete_native(client: Client, namespace: str, step: Delete) -> Object | None:
    try:
        propagation = "Orphan" if step.orphan_pods else "Background"
        return await client.delete(ALL_NATIVES[step.kind], step.name, namespace, uid=step.uid, propagation=propagation)
    except NotFound:
        return None


async def _evict_pod(client: Client, namespace: str, pod: str, uid: str) -> None:
    """Asks for an eviction rather than a delete, so that disruption budgets are respected."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    try:
        await client.raw("POST", PODS.path(namespace, pod, "eviction"), body=msgspec.json.encode(eviction))
    except (NotFound, Conflict):
        # The pod is gone already; its replacement is on the way.
        return


async def _ungate_pod(client: Client, namespace: str, step: Ungate) -> None:
    """Removes our scheduling gate and keeps the gates of others."""
    gates = [{"name": each} for each in step.remaining_gates]
    body = {"metadata": {"uid": step.uid}, "spec": {"schedulingGates": gates}}
    try:
        await client.patch(PODS, step.pod, namespace, body, style="merge", manager=OPERATOR)
    except NotFound:
        # The pod is gone already; its replacement is created with the gate and planned for again.
        return
    except (Conflict, Invalid):
        # The server answers the same if another pod has the name by now. Only a real conflict is an error.
        if await _pod_still_exists(client, namespace, step):
            raise


async def _patch_images(client: Client, namespace: str, step: PatchImages) -> Object | None:
    """Replaces sidecar images by list index; each index is guarded by a test of the container's name."""
    resource, template_path = (PODS, "") if step.kind == PODS.kind else (REPLICA_SETS, "/spec/template")
    body = [
        {"op": "test", "path": "/metadata/uid", "value": step.uid},
        *(each for sidecar in step.sidecars for each in _image_patches(template_path, sidecar)),
        *label_patches("/metadata/labels", step.labels),
        *(label_patches(f"{template_path}/metadata/labels", step.labels) if template_path else ()),
        *label_patches(f"{template_path}/metadata/annotations", step.annotations),
    ]
    try:
        return await client.patch(resource, step.name, namespace, body, style="json", manager=OPERATOR)
    except NotFound:
        # The object is gone already; its replacement has the new images, or a later pass patches it.
        return None


def _image_patches(template_path: str, sidecar: SidecarImage) -> Iterator[Object]:
    container_path = f"{template_path}/spec/initContainers/{sidecar.index}"
    yield {"op": "test", "path": f"{container_path}/name", "value": sidecar.name}
    yield {"op": "replace", "path": f"{container_path}/image", "value": sidecar.image}


async def _pod_still_exists(client: Client, namespace: str, step: Ungate) -> bool:
    try:
        found = await client.get(PODS, step.pod, namespace)
    except NotFound:
        return False
    return bool(found["metadata"]["uid"] == step.uid)
