"""Turns the field ownership of an object that we created by POST into that of an apply.

Server-side apply removes a field only if the manager applied it before. A POST is recorded as operation `Update`, so no
later apply would ever remove a field that the POST has set. Rewriting the entry once, before the first apply, avoids
that.
"""

from __future__ import annotations

from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.resource import Resource, namespaced_name
from pincompute.objects.content import Object
from pincompute.objects.field_managers import adopted_managed_fields


async def record_create_as_apply(client: Client, resource: Resource, found: Object, *, manager: str) -> None:
    """Marks our Update entry as Apply; raises Conflict if the object changed since it was read."""
    namespace, name = namespaced_name(found)
    entries = found["metadata"].get("managedFields", ())
    others = frozenset(each["manager"] for each in entries) - {manager}
    has_two_entries = sum(each["manager"] == manager and not each.get("subresource") for each in entries) > 1
    for index, entry in enumerate(entries):
        if entry["manager"] == manager and entry["operation"] == "Update" and not entry.get("subresource"):
            body = [
                {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                {"op": "replace", "path": f"/metadata/managedFields/{index}/operation", "value": "Apply"}
                if not has_two_entries
                else {
                    "op": "replace",
                    "path": "/metadata/managedFields",
                    "value": adopted_managed_fields(entries, manager, others),
                },
            ]
            try:
                await client.patch(resource, name, namespace, body, style="json", manager=manager)
            except Invalid as error:
                # A failed `test` operation is answered as 422 Invalid. Here it is common: Kubernetes' controllers
                # write the status of a native all the time.
                raise Conflict(409, "Conflict", "the object was modified in between", about=error.about) from error
            except NotFound as error:
                raise conflict_from_not_found(error) from error
            return


def conflict_from_not_found(error: NotFound) -> Conflict:
    """Reports a deleted object as an apply with its uid would: the pass is retried and creates the object again."""
    return Conflict(409, "Conflict", "the object was deleted in between", about=error.about)
