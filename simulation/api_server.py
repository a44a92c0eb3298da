"""A model of the API server, at the level of requests and responses of our client.

It implements what the operator relies on: preconditions, server-side apply with field ownership, generations,
finalizers, validation of immutable fields, paged lists, and watches with bookmarks, initial events and 410 Gone. It
does not implement what the operator does not use. `tests/simulation/test_model_fidelity.py` compares it with a real API
server.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import GROUP
from pincompute.controller.resources import CUSTOM_RESOURCES, PROJECT_NATIVES, WORKLOAD_NATIVES
from pincompute.kube import resource as resources
from pincompute.kube.request import APPLY_CONTENT_TYPE, JSON_CONTENT_TYPE, PATCH_CONTENT_TYPES, Request
from pincompute.kube.resource import NAMESPACES, Object, Resource
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED
from pincompute.objects.times import format_time
from simulation.api_errors import (
    ApiRefusal,
    conflict_refusal,
    invalid_refusal,
    not_found_refusal,
    validate_change,
    validate_object,
)
from simulation.evictions import evict_pod
from simulation.field_managers import ApplyConflict, FieldManager, record_update, server_side_apply
from simulation.field_paths import BUILT_IN, CUSTOM, ListSchema
from simulation.object_store import ObjectStore, StoreEvent, deep_copy
from simulation.patches import PatchTestFailed, json_patch, merge_patch
from simulation.selectors import Selector

BOOKMARK_INTERVAL_S = 120.0
WITHOUT_STATUS = {
    "configmaps", "secrets", "serviceaccounts", "roles", "rolebindings", "networkpolicies", "leases", "limitranges",
}  # fmt: skip

SERVED = {
    (each.group, each.version, each.plural): each
    for each in (
        *(value for value in vars(resources).values() if isinstance(value, Resource)),
        *CUSTOM_RESOURCES.values(),
        *WORKLOAD_NATIVES.values(),
        *PROJECT_NATIVES.values(),
    )
}


class RequestTarget(NamedTuple):
    """The resource, object and subresource that a request path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def list_schema(self) -> ListSchema:
        return CUSTOM if self.resource.group in {GROUP, "kubeflow.org"} else BUILT_IN


def parse_path(path: str) -> RequestTarget:
    parts = path.strip("/").split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and (group, version, rest[2]) in SERVED:
        namespace, rest = rest[1], rest[2:]
    resource = SERVED.get((group, version, rest[0]))
    if resource is None:
        raise ApiRefusal(404, "NotFound", "the server could not find the requested resource")
    return RequestTarget(resource, namespace, *rest[1:3])


class WatchCut(Exception):  # noqa: N818
    """The connection of a watch broke."""


class SimulatedApiServer:
    """Executes requests without delay; the simulated transport adds delays."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.uninstalled: set[Resource] = set()
        """Kinds without an installed CustomResourceDefinition."""
        self._watches: dict[asyncio.Event, bool] = {}
        """The event that wakes each watch, and whether its connection was cut."""
        self._pages: dict[str, list[bytes]] = {}

    def cut_watches(self) -> None:
        """Breaks the connections of all watches."""
        for wake in self._watches:
            self._watches[wake] = True
            wake.set()

    def answer(self, request: Request) -> bytes:
        """Executes a request; returns the body of a successful response and raises ApiRefusal otherwise."""
        at = self._target_of(request)
        match request.method:
            case "GET" if at.name:
                return self.store.encoded(self._get_object(at))
            case "GET":
                return self._list_objects(at, request)
            case "POST" if at.subresource == "eviction":
                evict_pod(self.store, self._get_object(at), msgspec.json.decode(request.body))
                return b'{"kind":"Status","apiVersion":"v1","status":"Success"}'
            case "POST":
                return self._create(at, request)
            case "PATCH" | "PUT":
                return self._update(at, request)
            case "DELETE":
                return self._delete(at, request)
        raise ApiRefusal(405, "MethodNotAllowed", f"no model of {request.method} {request.path}")

    async def follow(self, request: Request) -> AsyncGenerator[tuple[float, bytes]]:
        """Executes a watch: yields each line with the time of its event."""
        at, query = self._target_of(request), request.query
        selector = Selector.of(at.resource, at.namespace, query)
        # Events that happen while the initial objects are sent follow after them.
        since, first = (
            int(query.get("resourceVersion") or 0) or self.store.revision,
            self._initial_lines(at, selector, query),
        )
        for line in first:
            yield self._time(), line
        if since < self.store.compacted:
            yield self._time(), _expired_line(since)
            return
        end = self._time() + float(query.get("timeoutSeconds") or 300)
        async with aclosing(self._events(at.resource, since, end)) as events:
            async for event in events:
                line = self._line_of(selector, event) if event else self._bookmark(at.resource)
                if line:
                    yield (event.at if event else self._time()), line

    async def _events(self, resource: Resource, since: int, end: float) -> AsyncGenerator[StoreEvent | None]:
        """Events of a kind until the watch times out; None when a bookmark is due."""
        wake = asyncio.Event()
        self._watches[wake] = False

        def on_event(of: Resource, _: StoreEvent) -> None:
            if of == resource:
                wake.set()

        stop_listening = self.store.listen(on_event)
        history = self.store.history.setdefault(resource, [])
        position = bisect_right(history, since, key=lambda each: each.revision)
        try:
            while self._time() < end:
                wake.clear()
                if self._watches[wake]:
                    raise WatchCut
                while position < len(history):
                    position += 1
                    yield history[position - 1]
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(BOOKMARK_INTERVAL_S, end - self._time())):
                        await wake.wait()
                if not wake.is_set():
                    yield None
        finally:
            stop_listening()
            del self._watches[wake]

    def _initial_lines(self, at: RequestTarget, selector: Selector, query: Any) -> list[bytes]:
        """The existing objects as ADDED events, if the watch asks for them."""
        if query.get("sendInitialEvents") != "true" and query.get("resourceVersion"):
            return []
        existing = [each for each in self.store.list_all(at.resource) if selector.matches(each)]
        lines = [_event_line(ADDED, self.store.encoded(each)) for each in existing]
        if query.get("sendInitialEvents") == "true":
            lines.append(self._bookmark(at.resource, {"k8s.io/initial-events-end": "true"}))
        return lines

    def _line_of(self, selector: Selector, event: StoreEvent) -> bytes:
        """The event as a watch with this selector sees it: an object that stops matching is deleted."""
        is_, was = selector.matches(event.object), event.before is not None and selector.matches(event.before)
        if event.type == DELETED or (was and not is_):
            return _event_line(DELETED, self.store.encoded(event.object)) if was else b""
        return _event_line(MODIFIED if was else ADDED, self.store.encoded(event.object)) if is_ else b""

    def _bookmark(self, resource: Resource, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self.store.revision)}
        if annotations:
            metadata["annotations"] = annotations
        return _event_line(
            BOOKMARK,
            msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}),
        )

    def _target_of(self, request: Request) -> RequestTarget:
        at = parse_path(request.path)
        if at.resource in self.uninstalled:
            raise ApiRefusal(404, "NotFound", "the server could not find the requested resource")
        return at

    def _get_object(self, at: RequestTarget) -> Object:
        found = self.store.get(at.resource, at.name, at.namespace)
        if found is None:
            raise not_found_refusal(at.resource, at.name)
        return found

    def _list_objects(self, at: RequestTarget, request: Request) -> bytes:
        query = request.query
        if token := query.get("continue"):
            items = self._pages.pop(token, None)
            if items is None:
                raise ApiRefusal(410, "Expired", "The provided continue parameter is too old")
            revision = token.partition(":")[0]
        else:
            selector = Selector.of(at.resource, at.namespace, query)
            items = [self.store.encoded(each) for each in self.store.list_all(at.resource) if selector.matches(each)]
            revision = str(self.store.revision)
        limit = int(query.get("limit") or 0) or len(items)
        page, rest = items[:limit], items[limit:]
        metadata = {"resourceVersion": revision}
        if rest:
            metadata["continue"] = f"{revision}:{len(self._pages)}:{len(rest)}"
            self._pages[metadata["continue"]] = rest
        head = msgspec.json.encode({"kind": f"{at.resource.kind}List", "apiVersion": at.resource.api_version})
        return b'%b,"metadata":%b,"items":[%b]}' % (head[:-1], msgspec.json.encode(metadata), b",".join(page))

    def _create(self, at: RequestTarget, request: Request) -> bytes:
        body: Object = msgspec.json.decode(request.body)
        name = body["metadata"]["name"]
        if self.store.get(at.resource, name, at.namespace) is not None:
            raise ApiRefusal(409, "AlreadyExists", f'{at.resource.plural} "{name}" already exists')
        return self.store.encoded(self._create_object(at, body, FieldManager(_field_manager(request), "Update")))

    def _create_object(self, at: RequestTarget, body: Object, writer: FieldManager) -> Object:
        self._require_namespace(at)
        if _has_status(at.resource):
            body = {name: value for name, value in body.items() if name != "status"}
        if at.resource == NAMESPACES:
            body = {**_with_name_label(body), "status": {"phase": "Active"}}
        location = {"namespace": at.namespace} if at.namespace else {}
        metadata = {name: value for name, value in body["metadata"].items() if name not in {"uid", "resourceVersion"}}
        new = {"apiVersion": at.resource.api_version, "kind": at.resource.kind, **body, "metadata": metadata | location}
        empty = {**new, "metadata": {"name": metadata["name"]}}
        empty = {name: empty[name] for name in ("apiVersion", "kind", "metadata")}
        if writer.operation == "Apply":
            created = server_side_apply(at.list_schema, empty, new, writer, force=True, now=self._timestamp())
        else:
            created = record_update(at.list_schema, empty, new, writer, self._timestamp())
        if at.resource == NAMESPACES:
            # Set by the server and owned by no manager, so that no apply removes it.
            created = {**created, "spec": {"finalizers": ["kubernetes"]}}
        validate_object(at.resource, created)
        return self.store.create(at.resource, created)

    def _require_namespace(self, at: RequestTarget) -> None:
        """Refuses to create an object in a namespace that is missing or being deleted."""
        if not at.resource.namespaced:
            return
        namespace = self.store.get(NAMESPACES, at.namespace)
        if namespace is None:
            raise not_found_refusal(NAMESPACES, at.namespace)
        if namespace["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {at.namespace} because it is being terminated"
            details = {"causes": [{"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}]}
            raise ApiRefusal(403, "Forbidden", why, details)

    def _update(self, at: RequestTarget, request: Request) -> bytes:
        body = msgspec.json.decode(request.body)
        before = self.store.get(at.resource, at.name, at.namespace)
        if request.content_type == APPLY_CONTENT_TYPE:
            return self._apply(at, request, body, before)
        if before is None:
            raise not_found_refusal(at.resource, at.name)
        change: Callable[[], Object] = {
            JSON_CONTENT_TYPE: lambda: {**body, "metadata": {**before["metadata"], **body["metadata"]}},
            PATCH_CONTENT_TYPES["merge"]: lambda: merge_patch(before, body),
            PATCH_CONTENT_TYPES["json"]: lambda: json_patch(deep_copy(before), body),
        }[request.content_type]
        try:
            after = change()
        except PatchTestFailed as failed:
            raise ApiRefusal(
                422, "Invalid", "the server rejected our request due to an error in our request"
            ) from failed
        if isinstance(body, dict):
            _check_preconditions(at, before, body)
        after = self._restrict_update(at, before, after)
        if after != before:
            after = record_update(
                at.list_schema,
                before,
                after,
                FieldManager(_field_manager(request), "Update", at.subresource),
                self._timestamp(),
            )
        return self._store_update(at, before, after)

    def _apply(self, at: RequestTarget, request: Request, body: Object, before: Object | None) -> bytes:
        writer = FieldManager(_field_manager(request), "Apply", at.subresource)
        if before is None:
            if at.subresource:
                raise not_found_refusal(at.resource, at.name)
            if body["metadata"].get("uid"):
                raise conflict_refusal(at.resource, at.name, "uid mismatch: no existing object was found")
            return self.store.encoded(self._create_object(at, body, writer))
        _check_preconditions(at, before, body)
        if at.subresource == "status":
            body = {"metadata": {"name": at.name}, "status": body.get("status")}
        elif _has_status(at.resource):
            body = {name: value for name, value in body.items() if name != "status"}
        try:
            force = request.query.get("force") == "true"
            after = server_side_apply(at.list_schema, before, body, writer, force=force, now=self._timestamp())
        except ApplyConflict as conflict:
            message = f"Apply failed with {len(conflict.managers)} conflicts with {conflict}"
            raise ApiRefusal(409, "Conflict", message) from conflict
        return self._store_update(at, before, self._restrict_update(at, before, after))

    def _restrict_update(self, at: RequestTarget, before: Object, after: Object) -> Object:
        """Restricts an update to the addressed subresource, and restores fields that only the server sets."""
        server_fields = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
        fixed = {name: before["metadata"][name] for name in server_fields if name in before["metadata"]}
        if at.subresource == "status":
            managed = {"managedFields": after["metadata"].get("managedFields", [])}
            return {**before, "metadata": {**before["metadata"], **managed, **fixed}, "status": after.get("status")}
        uid = {"uid": after["metadata"].get("uid", fixed["uid"])}
        after = {**after, "metadata": {**after["metadata"], **fixed, **uid}}
        if _has_status(at.resource):
            after.pop("status", None)
            after |= {"status": before["status"]} if "status" in before else {}
        after = _with_name_label(after) if at.resource == NAMESPACES else after
        return (
            {**after, "metadata": _without_nulls(after["metadata"])}
            if at.list_schema is CUSTOM
            else _without_nulls(after)
        )

    def _store_update(self, at: RequestTarget, before: Object, after: Object) -> bytes:
        validate_object(at.resource, after)
        validate_change(at.resource, before, after)
        return self.store.encoded(self.store.replace(at.resource, before, after))

    def _delete(self, at: RequestTarget, request: Request) -> bytes:
        found = self._get_object(at)
        options: Object = msgspec.json.decode(request.body) if request.body else {}
        wanted = options.get("preconditions", {})
        for name, value in (("uid", wanted.get("uid")), ("resourceVersion", wanted.get("resourceVersion"))):
            if value and value != found["metadata"][name]:
                raise conflict_refusal(at.resource, at.name, f"the {name} in the precondition ({value}) does not match")
        self.store.delete(at.resource, found, options.get("propagationPolicy", "Background"))
        left = self.store.get(at.resource, at.name, at.namespace)
        return self.store.encoded(left) if left else b'{"kind":"Status","apiVersion":"v1","status":"Success"}'

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _timestamp(self) -> str:
        return format_time(self.store.now())


def _check_preconditions(at: RequestTarget, before: Object, body: Object) -> None:
    """Refuses a request with another uid or resourceVersion than that of the stored object."""
    metadata = body.get("metadata") or {}
    if metadata.get("uid") not in {None, before["metadata"]["uid"]}:
        raise invalid_refusal(at.resource, at.name, "metadata.uid", "field is immutable")
    if metadata.get("resourceVersion") not in {None, before["metadata"]["resourceVersion"]}:
        raise conflict_refusal(
            at.resource,
            at.name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )


def _with_name_label(namespace: Object) -> Object:
    """The namespace with the name label that the server adds."""
    metadata = namespace["metadata"]
    labels = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def _has_status(resource: Resource) -> bool:
    return resource.plural not in WITHOUT_STATUS


def _without_nulls(value: Any) -> Any:
    """Drops nulls, which built-in kinds do not store."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _field_manager(request: Request) -> str:
    return request.query.get("fieldManager", "unknown")


def _event_line(type_: str, encoded: bytes) -> bytes:
    return b'{"type":"%b","object":%b}' % (type_.encode(), encoded)


def _expired_line(revision: int) -> bytes:
    return _event_line(ERROR, ApiRefusal(410, "Expired", f"too old resource version: {revision}").body)
