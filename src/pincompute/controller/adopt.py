"""What was there before a workload becomes its own: an object with its record, and copies with their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from pincompute.api.names import OPERATOR, WORKLOAD
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.resource import PODS, Resource
from pincompute.objects.content import Object, pointed
from pincompute.objects.managers import inherited
from pincompute.objects.owners import controller_uid
from pincompute.planning.snapshot import FRIENDS


async def adopt(client: Client, resource: Resource, native: Object, uid: str) -> Object:
    """Ours and on record as ours, then as wanted: whoever begins anew in between finds one of ours."""
    metadata = native["metadata"]
    found = await client.get(resource, metadata["name"], metadata["namespace"])
    fence = {"op": "test", "path": "/metadata/uid", "value": uid}
    whose = {"op": "add", "path": "/metadata/ownerReferences", "value": metadata["ownerReferences"]}
    await own(client, resource, await _patched(client, resource, found, [fence, whose, _record(found)]))
    return await client.apply({**native, "metadata": {**metadata, "uid": uid}}, resource, manager=OPERATOR)


async def own(client: Client, resource: Resource, found: Object) -> None:
    """What we wrote by another way than by apply is on record twice: once is enough."""
    await _patched(client, resource, found, [_record(found)])


def _record(found: Object) -> Object:
    record = inherited(found["metadata"].get("managedFields", ()), OPERATOR, FRIENDS)
    return {"op": "replace", "path": "/metadata/managedFields", "value": record}


async def mark(client: Client, namespace: str, uid: str, labels: Mapping[str, str]) -> None:
    """Who is gone by now needs no label: his successor is made with it."""
    for pod in (await client.list(PODS, namespace, labels=f"!{WORKLOAD}")).items:
        if controller_uid(pod) != uid:
            continue
        metadata = pod["metadata"]
        fence = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
        body = [fence, *written("/metadata/labels", labels)]
        with suppress(NotFound):
            await client.patch(PODS, metadata["name"], namespace, body, style="json", manager=OPERATOR)


def written(place: str, values: Mapping[str, str]) -> Iterator[Object]:
    """Labels and annotations, each by its place."""
    return ({"op": "add", "path": f"{place}{pointed(name)}", "value": value} for name, value in values.items())


async def _patched(client: Client, resource: Resource, found: Object, body: list[Object]) -> Object:
    """Only what was just read is changed."""
    metadata = found["metadata"]
    fence = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    name, namespace = metadata["name"], metadata["namespace"]
    try:
        return await client.patch(resource, name, namespace, [fence, *body], style="json", manager=OPERATOR)
    except Invalid as error:
        # So it is said when the test fails.
        raise Conflict(409, "Conflict", "somebody wrote in between", about=error.about) from error
