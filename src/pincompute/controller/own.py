"""Own: what was born by POST says, once, that it was applied; else no later apply would ever take a field away."""

from __future__ import annotations

from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.resource import Resource, reference
from pincompute.objects.content import Object
from pincompute.objects.managers import inherited


async def own_birth(client: Client, resource: Resource, found: Object, *, manager: str) -> None:
    """Conflict, where it is not as it was found any more."""
    namespace, name = reference(found)
    entries = found["metadata"].get("managedFields", ())
    others = frozenset(each["manager"] for each in entries) - {manager}
    twice = sum(each["manager"] == manager and not each.get("subresource") for each in entries) > 1
    for index, entry in enumerate(entries):
        if entry["manager"] == manager and entry["operation"] == "Update" and not entry.get("subresource"):
            body = [
                {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                {"op": "replace", "path": f"/metadata/managedFields/{index}/operation", "value": "Apply"}
                if not twice
                else {
                    "op": "replace",
                    "path": "/metadata/managedFields",
                    "value": inherited(entries, manager, others),
                },
            ]
            try:
                await client.patch(resource, name, namespace, body, style="json", manager=manager)
            except Invalid as error:
                # So it is said when the test fails: a neighbour tells in its status how far it is, again and again.
                raise Conflict(409, "Conflict", "somebody wrote in between", about=error.about) from error
            except NotFound as error:
                raise removed(error) from error
            return


def removed(error: NotFound) -> Conflict:
    """As an apply says it that names an object which is gone: it is made anew as soon as that is seen."""
    return Conflict(409, "Conflict", "it was removed in between", about=error.about)
