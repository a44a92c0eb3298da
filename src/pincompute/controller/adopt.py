"""Takes over natives that existed before their workload: owner and field ownership first, then the content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from pincompute.api.names import OPERATOR, WORKLOAD_LABEL
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.resource import PODS, Resource
from pincompute.objects.content import Object, pointer_step
from pincompute.objects.field_managers import adopted_managed_fields
from pincompute.objects.owners import controller_uid
from pincompute.planning.snapshot import PLATFORM_FIELD_MANAGERS


async def adopt(client: Client, resource: Resource, native: Object, uid: str) -> Object:
    """Makes the object ours, cleans its field ownership, then applies what is wanted.

    The owner reference is written first: a pass that starts over after a crash finds an object of ours and simply
    applies what is still missing.
    """
    metadata = native["metadata"]
    found = await client.get(resource, metadata["name"], metadata["namespace"])
    test_uid = {"op": "test", "path": "/metadata/uid", "value": uid}
    set_owner = {"op": "add", "path": "/metadata/ownerReferences", "value": metadata["ownerReferences"]}
    patched = await _patch_unchanged(client, resource, found, [test_uid, set_owner, _managed_fields_patch(found)])
    # The patch itself left an Update entry beside the Apply entry. Merge them, or no apply could remove its fields.
    await _patch_unchanged(client, resource, patched, [_managed_fields_patch(patched)])
    return await client.apply({**native, "metadata": {**metadata, "uid": uid}}, resource, manager=OPERATOR)


def _managed_fields_patch(found: Object) -> Object:
    """Hands all fields over to our Apply entry, except those of Kubernetes' own controllers."""
    entries = adopted_managed_fields(found["metadata"].get("managedFields", ()), OPERATOR, PLATFORM_FIELD_MANAGERS)
    return {"op": "replace", "path": "/metadata/managedFields", "value": entries}


async def label_pods(client: Client, namespace: str, uid: str, labels: Mapping[str, str]) -> None:
    """Adds labels to the pods of a ReplicaSet that were created before its template had them.

    A pod that is gone by now needs none: its replacement is created with the labels.
    """
    for pod in (await client.list(PODS, namespace, labels=f"!{WORKLOAD_LABEL}")).items:
        if controller_uid(pod) != uid:
            continue
        metadata = pod["metadata"]
        test_uid = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
        body = [test_uid, *label_patches("/metadata/labels", labels)]
        with suppress(NotFound):
            await client.patch(PODS, metadata["name"], namespace, body, style="json", manager=OPERATOR)


def label_patches(path: str, values: Mapping[str, str]) -> Iterator[Object]:
    """JSON patch operations that set labels or annotations below a path, and leave all others alone."""
    return ({"op": "add", "path": f"{path}{pointer_step(name)}", "value": value} for name, value in values.items())


async def _patch_unchanged(client: Client, resource: Resource, found: Object, body: list[Object]) -> Object:
    """Patches only the very revision that was read; raises Conflict if the object was written in between."""
    metadata = found["metadata"]
    test_revision = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    name, namespace = metadata["name"], metadata["namespace"]
    try:
        return await client.patch(resource, name, namespace, [test_revision, *body], style="json", manager=OPERATOR)
    except Invalid as error:
        # A failed `test` operation is answered as 422 Invalid, although it means a conflict.
        raise Conflict(409, "Conflict", "the object was modified in between", about=error.about) from error
