"""Events of a watch: one line of JSON each."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from pincompute.kube.errors import invalid_response, parse_error

T = TypeVar("T")

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Event(NamedTuple, Generic[T]):
    """A change of an object, and the object as it is now (for DELETED: as it was last)."""

    type: str
    object: T
    before: T | None = None
    """The object before this change; set by an informer, which keeps it."""


class RawEvent(msgspec.Struct):
    """One line of a watch. Its object is not decoded yet, so that each reader decodes only the fields it needs."""

    type: str
    object: msgspec.Raw


class ObjectIdentity(msgspec.Struct):
    """Name, namespace and resourceVersion, which every object has."""

    metadata: ObjectMetadata

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name


class ObjectMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _BookmarkMetadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMetadata


_event_decoder = msgspec.json.Decoder(RawEvent)
_identity_decoder = msgspec.json.Decoder(ObjectIdentity)
_bookmark_decoder = msgspec.json.Decoder(_Bookmark)


def parse_event(line: bytes, about: str = "") -> RawEvent:
    """Decodes one line. Raises the error that the server may report in the middle of a watch."""
    try:
        event = _event_decoder.decode(line)
    except msgspec.DecodeError as error:
        raise invalid_response(line, about) from error
    if event.type == ERROR:
        raise parse_error(event.object, about=about)
    return event


def parse_identity(item: msgspec.Raw) -> ObjectIdentity:
    return _identity_decoder.decode(item)


def ends_initial_events(bookmark: msgspec.Raw) -> bool:
    """Whether this bookmark marks the end of the initial events, which list the existing objects."""
    return (_bookmark_decoder.decode(bookmark).metadata.annotations or {}).get("k8s.io/initial-events-end") == "true"
