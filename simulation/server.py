"""A model of the API server, at the level of what our client sends and gets."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import GROUP
from pincompute.controller.resources import NATIVES, NOUNS, PROJECT_NATIVES
from pincompute.kube import resource as resources
from pincompute.kube.request import APPLY, JSON, PATCHES, Request
from pincompute.kube.resource import NAMESPACES, Object, Resource
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED
from pincompute.objects.times import stamp
from simulation.evictions import evict
from simulation.fields import BUILT_IN, CUSTOM, Shape
from simulation.managers import Conflicts, Writer, applied, updated
from simulation.merging import TestFailed, json_patch, merge_patch
from simulation.refusals import Refusal, check, check_change, conflict, invalid, not_found
from simulation.selection import Selection
from simulation.store import Happened, Store, copied

BOOKMARKS = 120.0
"""Seconds between two of them."""
WITHOUT_STATUS = {"configmaps", "secrets", "serviceaccounts", "roles", "rolebindings", "networkpolicies", "leases"}

SERVED = {
    (each.group, each.version, each.plural): each
    for each in (
        *(value for value in vars(resources).values() if isinstance(value, Resource)),
        *NOUNS.values(),
        *NATIVES.values(),
        *PROJECT_NATIVES.values(),
    )
}


class Target(NamedTuple):
    """What a path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def shape(self) -> Shape:
        return CUSTOM if self.resource.group in {GROUP, "kubeflow.org"} else BUILT_IN


def target(path: str) -> Target:
    parts = path.strip("/").split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and (group, version, rest[2]) in SERVED:
        namespace, rest = rest[1], rest[2:]
    resource = SERVED.get((group, version, rest[0]))
    if resource is None:
        raise Refusal(404, "NotFound", "the server could not find the requested resource")
    return Target(resource, namespace, *rest[1:3])


class Cut(Exception):  # noqa: N818
    """A watch that breaks off."""


class Server:
    """Answers at once; whoever carries the request takes its time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.missing: set[Resource] = set()
        """Kinds whose definition is not installed."""
        self._watches: dict[asyncio.Event, bool] = {}
        """What each waits for, and whether it was cut."""
        self._pages: dict[str, list[bytes]] = {}

    def cut(self) -> None:
        """All watches."""
        for each in self._watches:
            self._watches[each] = True
            each.set()

    def answer(self, request: Request) -> bytes:
        """The body of a good answer; anything else is a Refusal."""
        at = self._at(request)
        match request.method:
            case "GET" if at.name:
                return self.store.encoded(self._found(at))
            case "GET":
                return self._list(at, request)
            case "POST" if at.subresource == "eviction":
                evict(self.store, self._found(at), msgspec.json.decode(request.body))
                return b'{"kind":"Status","apiVersion":"v1","status":"Success"}'
            case "POST":
                return self._create(at, request)
            case "PATCH" | "PUT":
                return self._change(at, request)
            case "DELETE":
                return self._delete(at, request)
        raise Refusal(405, "MethodNotAllowed", f"no model of {request.method} {request.path}")

    async def follow(self, request: Request) -> AsyncGenerator[tuple[float, bytes]]:
        """A watch: each line with the time at which it happened."""
        at, query = self._at(request), request.query
        selection = Selection.of(at.resource, at.namespace, query)
        # What happens while the first are told comes after them.
        since, first = int(query.get("resourceVersion") or 0) or self.store.revision, self._first(at, selection, query)
        for line in first:
            yield self._time(), line
        if since < self.store.compacted:
            yield self._time(), _too_old(since)
            return
        end = self._time() + float(query.get("timeoutSeconds") or 300)
        async with aclosing(self._events(at.resource, since, end)) as events:
            async for event in events:
                line = self._line(selection, event) if event else self._bookmark(at.resource)
                if line:
                    yield (event.at if event else self._time()), line

    async def _events(self, resource: Resource, since: int, end: float) -> AsyncGenerator[Happened | None]:
        """All that happens to a kind until the end; nothing where it is time for a bookmark."""
        news = asyncio.Event()
        self._watches[news] = False

        def heard(of: Resource, _: Happened) -> None:
            if of == resource:
                news.set()

        silence = self.store.listen(heard)
        told = self.store.history.setdefault(resource, [])
        place = bisect_right(told, since, key=lambda each: each.revision)
        try:
            while self._time() < end:
                news.clear()
                if self._watches[news]:
                    raise Cut
                while place < len(told):
                    place += 1
                    yield told[place - 1]
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(BOOKMARKS, end - self._time())):
                        await news.wait()
                if not news.is_set():
                    yield None
        finally:
            silence()
            del self._watches[news]

    def _first(self, at: Target, selection: Selection, query: Any) -> list[bytes]:
        """What is there already, where it is asked for by a watch."""
        if query.get("sendInitialEvents") != "true" and query.get("resourceVersion"):
            return []
        there = [each for each in self.store.all(at.resource) if selection.takes(each)]
        lines = [_event(ADDED, self.store.encoded(each)) for each in there]
        if query.get("sendInitialEvents") == "true":
            lines.append(self._bookmark(at.resource, {"k8s.io/initial-events-end": "true"}))
        return lines

    def _line(self, selection: Selection, event: Happened) -> bytes:
        """As those see it who only see what matches."""
        is_, was = selection.takes(event.object), event.before is not None and selection.takes(event.before)
        if event.type == DELETED or (was and not is_):
            return _event(DELETED, self.store.encoded(event.object)) if was else b""
        return _event(MODIFIED if was else ADDED, self.store.encoded(event.object)) if is_ else b""

    def _bookmark(self, resource: Resource, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self.store.revision)}
        if annotations:
            metadata["annotations"] = annotations
        return _event(
            BOOKMARK,
            msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}),
        )

    def _at(self, request: Request) -> Target:
        at = target(request.path)
        if at.resource in self.missing:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        return at

    def _found(self, at: Target) -> Object:
        found = self.store.get(at.resource, at.name, at.namespace)
        if found is None:
            raise not_found(at.resource, at.name)
        return found

    def _list(self, at: Target, request: Request) -> bytes:
        query = request.query
        if token := query.get("continue"):
            items = self._pages.pop(token, None)
            if items is None:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
            revision = token.partition(":")[0]
        else:
            selection = Selection.of(at.resource, at.namespace, query)
            items = [self.store.encoded(each) for each in self.store.all(at.resource) if selection.takes(each)]
            revision = str(self.store.revision)
        limit = int(query.get("limit") or 0) or len(items)
        page, rest = items[:limit], items[limit:]
        metadata = {"resourceVersion": revision}
        if rest:
            metadata["continue"] = f"{revision}:{len(self._pages)}:{len(rest)}"
            self._pages[metadata["continue"]] = rest
        head = msgspec.json.encode({"kind": f"{at.resource.kind}List", "apiVersion": at.resource.api_version})
        return b'%b,"metadata":%b,"items":[%b]}' % (head[:-1], msgspec.json.encode(metadata), b",".join(page))

    def _create(self, at: Target, request: Request) -> bytes:
        said: Object = msgspec.json.decode(request.body)
        name = said["metadata"]["name"]
        if self.store.get(at.resource, name, at.namespace) is not None:
            raise Refusal(409, "AlreadyExists", f'{at.resource.plural} "{name}" already exists')
        return self.store.encoded(self._made(at, said, Writer(_manager(request), "Update")))

    def _made(self, at: Target, said: Object, writer: Writer) -> Object:
        self._must_take(at)
        if _has_status(at.resource):
            said = {name: value for name, value in said.items() if name != "status"}
        if at.resource == NAMESPACES:
            said = {**_named(said), "status": {"phase": "Active"}}
        place = {"namespace": at.namespace} if at.namespace else {}
        metadata = {name: value for name, value in said["metadata"].items() if name not in {"uid", "resourceVersion"}}
        new = {"apiVersion": at.resource.api_version, "kind": at.resource.kind, **said, "metadata": metadata | place}
        empty = {**new, "metadata": {"name": metadata["name"]}}
        empty = {name: empty[name] for name in ("apiVersion", "kind", "metadata")}
        if writer.operation == "Apply":
            made = applied(at.shape, empty, new, writer, force=True, now=self._stamp())
        else:
            made = updated(at.shape, empty, new, writer, self._stamp())
        if at.resource == NAMESPACES:
            # Given by the server, so that nobody who applies lets go of it.
            made = {**made, "spec": {"finalizers": ["kubernetes"]}}
        check(at.resource, made)
        return self.store.create(at.resource, made)

    def _must_take(self, at: Target) -> None:
        """What lies in a namespace is only made where there is one that stays."""
        if not at.resource.namespaced:
            return
        namespace = self.store.get(NAMESPACES, at.namespace)
        if namespace is None:
            raise not_found(NAMESPACES, at.namespace)
        if namespace["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {at.namespace} because it is being terminated"
            details = {"causes": [{"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}]}
            raise Refusal(403, "Forbidden", why, details)

    def _change(self, at: Target, request: Request) -> bytes:
        said = msgspec.json.decode(request.body)
        before = self.store.get(at.resource, at.name, at.namespace)
        if request.content == APPLY:
            return self._apply(at, request, said, before)
        if before is None:
            raise not_found(at.resource, at.name)
        change: Callable[[], Object] = {
            JSON: lambda: {**said, "metadata": {**before["metadata"], **said["metadata"]}},
            PATCHES["merge"]: lambda: merge_patch(before, said),
            PATCHES["json"]: lambda: json_patch(copied(before), said),
        }[request.content]
        try:
            after = change()
        except TestFailed as failed:
            raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request") from failed
        if isinstance(said, dict):
            _must_be(at, before, said)
        after = self._fitting(at, before, after)
        if after != before:
            after = updated(at.shape, before, after, Writer(_manager(request), "Update", at.subresource), self._stamp())
        return self._replaced(at, before, after)

    def _apply(self, at: Target, request: Request, said: Object, before: Object | None) -> bytes:
        writer = Writer(_manager(request), "Apply", at.subresource)
        if before is None:
            if at.subresource:
                raise not_found(at.resource, at.name)
            if said["metadata"].get("uid"):
                raise conflict(at.resource, at.name, "uid mismatch: no existing object was found")
            return self.store.encoded(self._made(at, said, writer))
        _must_be(at, before, said)
        if at.subresource == "status":
            said = {"metadata": {"name": at.name}, "status": said.get("status")}
        elif _has_status(at.resource):
            said = {name: value for name, value in said.items() if name != "status"}
        try:
            force = request.query.get("force") == "true"
            after = applied(at.shape, before, said, writer, force=force, now=self._stamp())
        except Conflicts as others:
            words = f"Apply failed with {len(others.managers)} conflicts with {others}"
            raise Refusal(409, "Conflict", words) from others
        return self._replaced(at, before, self._fitting(at, before, after))

    def _fitting(self, at: Target, before: Object, after: Object) -> Object:
        """Only what the addressed part of it may change, without what nobody may."""
        keeps = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
        fixed = {name: before["metadata"][name] for name in keeps if name in before["metadata"]}
        if at.subresource == "status":
            managed = {"managedFields": after["metadata"].get("managedFields", [])}
            return {**before, "metadata": {**before["metadata"], **managed, **fixed}, "status": after.get("status")}
        uid = {"uid": after["metadata"].get("uid", fixed["uid"])}
        after = {**after, "metadata": {**after["metadata"], **fixed, **uid}}
        if _has_status(at.resource):
            after.pop("status", None)
            after |= {"status": before["status"]} if "status" in before else {}
        after = _named(after) if at.resource == NAMESPACES else after
        return {**after, "metadata": _tidy(after["metadata"])} if at.shape is CUSTOM else _tidy(after)

    def _replaced(self, at: Target, before: Object, after: Object) -> bytes:
        check(at.resource, after)
        check_change(at.resource, before, after)
        return self.store.encoded(self.store.replace(at.resource, before, after))

    def _delete(self, at: Target, request: Request) -> bytes:
        found = self._found(at)
        options: Object = msgspec.json.decode(request.body) if request.body else {}
        wanted = options.get("preconditions", {})
        for name, value in (("uid", wanted.get("uid")), ("resourceVersion", wanted.get("resourceVersion"))):
            if value and value != found["metadata"][name]:
                raise conflict(at.resource, at.name, f"the {name} in the precondition ({value}) does not match")
        self.store.delete(at.resource, found, options.get("propagationPolicy", "Background"))
        left = self.store.get(at.resource, at.name, at.namespace)
        return self.store.encoded(left) if left else b'{"kind":"Status","apiVersion":"v1","status":"Success"}'

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _stamp(self) -> str:
        return stamp(self.store.now())


def _must_be(at: Target, before: Object, said: Object) -> None:
    """Who says which object is meant, and at which revision, is held to it."""
    metadata = said.get("metadata") or {}
    if metadata.get("uid") not in {None, before["metadata"]["uid"]}:
        raise invalid(at.resource, at.name, "metadata.uid", "field is immutable")
    if metadata.get("resourceVersion") not in {None, before["metadata"]["resourceVersion"]}:
        raise conflict(
            at.resource,
            at.name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )


def _named(namespace: Object) -> Object:
    """With the label by which network policies find it."""
    metadata = namespace["metadata"]
    labels = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def _has_status(resource: Resource) -> bool:
    return resource.plural not in WITHOUT_STATUS


def _tidy(value: Any) -> Any:
    """Kinds that are built in know no null."""
    if isinstance(value, dict):
        return {name: _tidy(each) for name, each in value.items() if each is not None}
    return [_tidy(each) for each in value] if isinstance(value, list) else value


def _manager(request: Request) -> str:
    return request.query.get("fieldManager", "unknown")


def _event(type_: str, encoded: bytes) -> bytes:
    return b'{"type":"%b","object":%b}' % (type_.encode(), encoded)


def _too_old(revision: int) -> bytes:
    return _event(ERROR, Refusal(410, "Expired", f"too old resource version: {revision}").body)
