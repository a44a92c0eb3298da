"""A request as a value: what would be sent, without sending it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import msgspec

from pincompute.kube.resource import Object, Resource, reference

JSON = "application/json"
# JSON is YAML, and this is the one spelling of server-side apply that every version of the server takes.
APPLY = "application/apply-patch+yaml"
PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}

Style = Literal["merge", "json"]


class Target(NamedTuple):
    """One object, or one subresource of it."""

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, resource: Resource, item: Object, subresource: str = "") -> Self:
        """The place that an object names itself."""
        namespace, name = reference(item)
        return cls(resource, name, namespace, subresource)

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name, self.subresource)

    @property
    def about(self) -> str:
        return self.resource.named(self.namespace, self.name)

    @property
    def right(self) -> str:
        """As rights name it: `pods`, or `pods/log`."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    content: str = JSON
    about: str = ""
    """What a person calls the thing that is asked for."""
    verb: str = ""
    """What is done, as rights name it; `watch` is another than `list`."""
    resource: str = ""
    """To what, as rights name it: `pods`, or `pods/log`."""

    @property
    def safe(self) -> bool:
        """Asking twice does no harm."""
        return self.method == "GET"


def get(target: Target) -> Request:
    return Request("GET", target.path, about=target.about, verb="get", resource=target.right)


def select(resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Request:
    """All objects of a kind that match."""
    query = _query(labelSelector=labels, fieldSelector=fields)
    about = resource.named(namespace)
    return Request("GET", resource.path(namespace), query, about=about, verb="list", resource=resource.plural)


def page(selection: Request, limit: int, token: str) -> Request:
    """One page of a selection, beginning where the token of the page before says."""
    return selection._replace(query={**selection.query, **_query(limit=limit, **{"continue": token})})


def watch(selection: Request, revision: str, seconds: int) -> Request:
    """What happens to a selection after a revision, for so many seconds."""
    asked = _query(watch="true", resourceVersion=revision, timeoutSeconds=seconds, allowWatchBookmarks="true")
    return selection._replace(query={**selection.query, **asked}, verb="watch")


def stream(selection: Request, seconds: int) -> Request:
    """All there is, one by one, then a bookmark that says so, and then what happens."""
    asked = _query(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    begun = watch(selection, "", seconds)
    return begun._replace(query={**begun.query, **asked})


def create(target: Target, item: Object, manager: str, *, dry_run: bool = False) -> Request:
    # A new object is posted to the folder that will hold it.
    folder, query = target.resource.path(target.namespace), _writing(manager) | _trying(dry_run)
    return Request("POST", folder, query, _body(target, item), JSON, target.about, "create", target.right)


def apply(target: Target, item: Object, manager: str, *, force: bool, dry_run: bool = False) -> Request:
    """Server-side apply: the server merges what this manager wants with what others want."""
    query = _writing(manager) | {"force": "true" if force else "false"} | _trying(dry_run)
    body = _printable(_body(target, item))
    return Request("PATCH", target.path, query, body, APPLY, target.about, "patch", target.right)


def _trying(dry_run: bool) -> dict[str, str]:
    """Everything is done but keeping it."""
    return {"dryRun": "All"} if dry_run else {}


def patch(target: Target, body: Any, style: Style, manager: str) -> Request:
    encoded = msgspec.json.encode(body)
    query = _writing(manager)
    return Request("PATCH", target.path, query, encoded, PATCHES[style], target.about, "patch", target.right)


def delete(target: Target, uid: str, propagation: str) -> Request:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if uid:
        options["preconditions"] = {"uid": uid}
    body = msgspec.json.encode(options)
    return Request("DELETE", target.path, {}, body, JSON, target.about, "delete", target.right)


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
    return Request("GET", log.path, query, about=log.about, verb="get", resource=log.right)


def _query(**parameters: str | int | None) -> dict[str, str]:
    """The parameters that say something."""
    return {name: str(value) for name, value in parameters.items() if value not in ("", None)}


def _writing(manager: str) -> dict[str, str]:
    # A field that the server does not know is a mistake to hear of, not one to drop without a word.
    return {"fieldManager": manager, "fieldValidation": "Strict"}


_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _printable(body: bytes) -> bytes:
    """JSON that is YAML as well: what stands for itself in the one is refused or a line break in the other."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", body.decode()).encode()


def _body(target: Target, item: Object) -> bytes:
    resource = target.resource
    return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **item})
