"""Steps become requests. Nothing is chosen here: a step says all."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pincompute.api.names import OPERATOR
from pincompute.base.problem import Refused
from pincompute.controller.adopt import adopt, mark, written
from pincompute.controller.own import own_birth, removed
from pincompute.controller.resources import BECOME
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from pincompute.kube.resource import PODS, REPLICA_SETS
from pincompute.objects.content import Object
from pincompute.objects.owners import controller_uid
from pincompute.planning.diff import not_ours
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Evict, Mark, Renew, Sidecar, Step, Ungate


async def act(client: Client, namespace: str, step: Step) -> Object | None:
    """The object as it is after the step; nothing where it is gone."""
    match step:
        case Create(native):
            return await _create(client, native)
        case Apply(native, uid, applied):
            return await _apply(client, native, uid, applied=applied)
        case Adopt(native, uid):
            return await adopt(client, BECOME[native["kind"]], native, uid)
        case Renew():
            return await _renew(client, namespace, step)
        case Mark(_, uid, labels):
            await mark(client, namespace, uid, labels)
        case Delete():
            return await _delete(client, namespace, step)
        case Evict(pod, uid):
            await _evict(client, namespace, pod, uid)
        case Ungate():
            await _ungate(client, namespace, step)
    return None


async def _create(client: Client, native: Object) -> Object:
    resource = BECOME[native["kind"]]
    try:
        return await client.create(resource, native, manager=OPERATOR)
    except AlreadyExists:
        metadata = native["metadata"]
        found = await client.get(resource, metadata["name"], metadata.get("namespace", ""))
        if controller_uid(found) != controller_uid(native):
            raise Refused(not_ours(native)) from None
        # Ours: made by a pass whose answer was lost, or robbed of the label by which we see it.
        return await _apply(client, native, found["metadata"]["uid"])


async def _apply(client: Client, native: Object, uid: str, *, applied: bool = False) -> Object:
    resource = BECOME[native["kind"]]
    metadata = native["metadata"]
    try:
        if not applied:
            found = await client.get(resource, metadata["name"], metadata.get("namespace", ""))
            await own_birth(client, resource, found, manager=OPERATOR)
    except NotFound as error:
        raise removed(error) from error
    fenced = {**native, "metadata": {**metadata, "uid": uid}}
    return await client.apply(fenced, resource, manager=OPERATOR)


async def _delete(client: Client, namespace: str, step: Delete) -> Object | None:
    try:
        propagation = "Orphan" if step.pods_stay else "Background"
        return await client.delete(BECOME[step.kind], step.name, namespace, uid=step.uid, propagation=propagation)
    except NotFound:
        return None


async def _evict(client: Client, namespace: str, pod: str, uid: str) -> None:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    try:
        await client.raw("POST", PODS.path(namespace, pod, "eviction"), body=msgspec.json.encode(eviction))
    except (NotFound, Conflict):
        # Gone already: its successor is on its way.
        return


async def _ungate(client: Client, namespace: str, step: Ungate) -> None:
    gates = [{"name": each} for each in step.left]
    body = {"metadata": {"uid": step.uid}, "spec": {"schedulingGates": gates}}
    try:
        await client.patch(PODS, step.pod, namespace, body, style="merge", manager=OPERATOR)
    except NotFound:
        # Gone already, and what follows it is gated anew.
        return
    except (Conflict, Invalid):
        # So it is said of another pod of that name, too.
        if await _stands(client, namespace, step):
            raise


async def _renew(client: Client, namespace: str, step: Renew) -> Object | None:
    """By their places, each of them checked: what stands there is what was seen."""
    resource, of_pods = (PODS, "") if step.kind == PODS.kind else (REPLICA_SETS, "/spec/template")
    body = [
        {"op": "test", "path": "/metadata/uid", "value": step.uid},
        *(each for sidecar in step.sidecars for each in _image(of_pods, sidecar)),
        *written("/metadata/labels", step.labels),
        *(written(f"{of_pods}/metadata/labels", step.labels) if of_pods else ()),
        *written(f"{of_pods}/metadata/annotations", step.annotations),
    ]
    try:
        return await client.patch(resource, step.name, namespace, body, style="json", manager=OPERATOR)
    except NotFound:
        # Gone already: its successor is made as it is wanted, or is renewed in its turn.
        return None


def _image(of_pods: str, sidecar: Sidecar) -> Iterator[Object]:
    place = f"{of_pods}/spec/initContainers/{sidecar.place}"
    yield {"op": "test", "path": f"{place}/name", "value": sidecar.name}
    yield {"op": "replace", "path": f"{place}/image", "value": sidecar.image}


async def _stands(client: Client, namespace: str, step: Ungate) -> bool:
    try:
        found = await client.get(PODS, step.pod, namespace)
    except NotFound:
        return False
    return bool(found["metadata"]["uid"] == step.uid)
