"""A watch: one line of JSON an event, in chunks that end anywhere."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from pincompute.kube.errors import error_of, unreadable

T = TypeVar("T")

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Event(NamedTuple, Generic[T]):
    """What happened to an object, and the object as it is now (or was last, when it is gone)."""

    type: str
    object: T
    before: T | None = None
    """As it was last seen, where somebody keeps it."""


class Told(msgspec.Struct):
    """One line of a watch, its object not yet read: who reads it decides how much of it is wanted."""

    type: str
    object: msgspec.Raw


class Identity(msgspec.Struct):
    """What every object carries, whatever else its reader declares."""

    metadata: Metadata

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Marks(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Marks


_told = msgspec.json.Decoder(Told)
_identity = msgspec.json.Decoder(Identity)
_bookmark = msgspec.json.Decoder(_Bookmark)


def told(line: bytes, about: str = "") -> Told:
    """Read one line; an error that the server reports in the midst of a watch is raised."""
    try:
        event = _told.decode(line)
    except msgspec.DecodeError as error:
        raise unreadable(line, about) from error
    if event.type == ERROR:
        raise error_of(event.object, about=about)
    return event


def identity(item: msgspec.Raw) -> Identity:
    return _identity.decode(item)


def all_told(bookmark: msgspec.Raw) -> bool:
    """Whether this is the bookmark after the last of the objects that were there already."""
    return (_bookmark.decode(bookmark).metadata.annotations or {}).get("k8s.io/initial-events-end") == "true"
