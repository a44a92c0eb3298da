"""Requests to the API server as values; building one sends nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import msgspec

from pincompute.kube.resource import Object, Resource, namespaced_name

JSON_CONTENT_TYPE = "application/json"
# Every version of the server accepts this content type for server-side apply. JSON is valid YAML.
APPLY_CONTENT_TYPE = "application/apply-patch+yaml"
PATCH_CONTENT_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    # Merges lists by the key of their entries, such as the type of a condition.
    "strategic": "application/strategic-merge-patch+json",
}

PatchStyle = Literal["merge", "json", "strategic"]


class Target(NamedTuple):
    """One object, or one subresource of it."""

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, resource: Resource, item: Object, subresource: str = "") -> Self:
        """Target with the name and namespace of an object."""
        namespace, name = namespaced_name(item)
        return cls(resource, name, namespace, subresource)

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name, self.subresource)

    @property
    def about(self) -> str:
        return self.resource.describe(self.namespace, self.name)

    @property
    def rbac_resource(self) -> str:
        """Resource as RBAC rules spell it: `pods`, or `pods/log`."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    content_type: str = JSON_CONTENT_TYPE
    about: str = ""
    """Object of the request as messages name it: `deployments me/hello`."""
    verb: str = ""
    """Verb as RBAC rules spell it; `watch` differs from `list`."""
    resource: str = ""
    """Resource as RBAC rules spell it: `pods`, or `pods/log`."""

    @property
    def safe(self) -> bool:
        """Whether the request only reads, so that it can be repeated."""
        return self.method == "GET"


def get(target: Target) -> Request:
    return Request("GET", target.path, about=target.about, verb="get", resource=target.rbac_resource)


def select(resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Request:
    """List request for all objects of a kind that match the selectors."""
    query = _query(labelSelector=labels, fieldSelector=fields)
    about = resource.describe(namespace)
    return Request("GET", resource.path(namespace), query, about=about, verb="list", resource=resource.plural)


def page(selection: Request, limit: int, token: str) -> Request:
    """Request for one page of a list, starting at the continue token of the previous page."""
    return selection._replace(query={**selection.query, **_query(limit=limit, **{"continue": token})})


def watch(selection: Request, resource_version: str, timeout_s: int) -> Request:
    """Watch request for the changes after a resourceVersion, which the server ends after `timeout_s`."""
    query = _query(watch="true", resourceVersion=resource_version, timeoutSeconds=timeout_s, allowWatchBookmarks="true")
    return selection._replace(query={**selection.query, **query}, verb="watch")


def watch_list(selection: Request, timeout_s: int) -> Request:
    """Watch request that first sends every existing object, then a bookmark, then the changes."""
    query = _query(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    started = watch(selection, "", timeout_s)
    return started._replace(query={**started.query, **query})


def create(target: Target, item: Object, manager: str, *, dry_run: bool = False) -> Request:
    # A new object is posted to its collection.
    collection, query = target.resource.path(target.namespace), _write_query(manager) | _dry_run_query(dry_run)
    return Request(
        "POST", collection, query, _body(target, item), JSON_CONTENT_TYPE, target.about, "create", target.rbac_resource
    )


def apply(target: Target, item: Object, manager: str, *, force: bool, dry_run: bool = False) -> Request:
    """Server-side apply: the server merges this manager's fields with those of other managers."""
    query = _write_query(manager) | {"force": "true" if force else "false"} | _dry_run_query(dry_run)
    body = _escape_for_yaml(_body(target, item))
    return Request("PATCH", target.path, query, body, APPLY_CONTENT_TYPE, target.about, "patch", target.rbac_resource)


def replace(target: Target, item: Object, manager: str) -> Request:
    """Writes a whole object, or a whole subresource, if `item` has the present resourceVersion."""
    body = _body(target, item)
    return Request(
        "PUT", target.path, _write_query(manager), body, JSON_CONTENT_TYPE, target.about, "update", target.rbac_resource
    )


def _dry_run_query(dry_run: bool) -> dict[str, str]:
    """With dryRun the server does everything except storing the object."""
    return {"dryRun": "All"} if dry_run else {}


def patch(target: Target, body: Any, style: PatchStyle, manager: str) -> Request:
    encoded = msgspec.json.encode(body)
    query = _write_query(manager)
    return Request(
        "PATCH", target.path, query, encoded, PATCH_CONTENT_TYPES[style], target.about, "patch", target.rbac_resource
    )


def delete(target: Target, uid: str, propagation: str, resource_version: str = "") -> Request:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if preconditions := _query(uid=uid, resourceVersion=resource_version):
        options["preconditions"] = preconditions
    body = msgspec.json.encode(options)
    return Request("DELETE", target.path, {}, body, JSON_CONTENT_TYPE, target.about, "delete", target.rbac_resource)


def logs(  # noqa: PLR0913
    pod: Target,
    *,
    container: str,
    tail: int | None,
    follow: bool,
    previous: bool,
    since: str = "",
    timestamps: bool = False,
) -> Request:
    query = _query(
        container=container,
        tailLines=tail,
        follow="true" if follow else "",
        previous="true" if previous else "",
        sinceTime=since,
        timestamps="true" if timestamps else "",
    )
    log = pod._replace(subresource="log")
    return Request("GET", log.path, query, about=log.about, verb="get", resource=log.rbac_resource)


def _query(**parameters: str | int | None) -> dict[str, str]:
    """Query parameters, without the empty ones."""
    return {name: str(value) for name, value in parameters.items() if value not in ("", None)}


def _write_query(manager: str) -> dict[str, str]:
    # Strict: an unknown field is an error. By default the server would drop it with a warning.
    return {"fieldManager": manager, "fieldValidation": "Strict"}


_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _escape_for_yaml(body: bytes) -> bytes:
    """Escapes characters that JSON allows as they are, but that YAML rejects or reads as line breaks."""
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", body.decode()).encode()


def _body(target: Target, item: Object) -> bytes:
    resource = target.resource
    return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **item})
