"""Decodes the objects of lists and watches into the fields that an informer declares.

Most of an object is not declared, and skipping it costs as much as decoding the rest. So a type that declares the name,
namespace and resourceVersion of its objects is decoded with its event in one pass, and a list with all its items in
one. For other types a second pass reads these three.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from pincompute.kube.errors import invalid_response
from pincompute.kube.watch import ADDED, BOOKMARK, DELETED, MODIFIED, ObjectIdentity, parse_event

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""
_CHANGES = frozenset({ADDED, MODIFIED, DELETED})
_IDENTITY = frozenset({"name", "namespace", "resourceVersion"})
_NOTHING = msgspec.Raw()


class Reading(NamedTuple, Generic[T]):
    """One event of a watch, or one item of a list."""

    type: str
    key: Key
    resource_version: str
    item: T | None = None
    """None for bookmarks, and if a declared field has another type: one such object must not hide the others."""
    raw: msgspec.Raw = _NOTHING
    """The object, where the item is None."""
    error: str = ""
    """Why the object could not be decoded."""


class PageMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, Generic[T]):
    """One page of a list."""

    metadata: PageMetadata
    items: list[T] | None = None


class _TypedEvent(msgspec.Struct, Generic[T]):
    type: str
    object: T


class ObjectReader(Generic[T]):
    """Decoder of one kind of objects."""

    def __init__(self, type_: type[T], about: str) -> None:
        self._about = about
        self._declares_identity = declares_identity(type_)
        self._object_decoder = msgspec.json.Decoder(type_)
        self._event_decoder: msgspec.json.Decoder[_TypedEvent[Any]] = msgspec.json.Decoder(_TypedEvent[type_])
        self._page_decoder: msgspec.json.Decoder[Page[Any]] = msgspec.json.Decoder(Page[type_])

    def read_line(self, line: bytes) -> Reading[T]:
        """Decodes one line of a watch. Raises the error that the server may report in it."""
        try:
            if self._declares_identity:
                event = self._event_decoder.decode(line)
                if event.type in _CHANGES:
                    return self._reading(event.type, event.object.metadata, event.object)
            else:
                identified = _identity_decoder.decode(line)
                if identified.type in _CHANGES:
                    item = self._event_decoder.decode(line).object
                    return self._reading(identified.type, identified.object.metadata, item)
        except msgspec.DecodeError:
            # A bookmark, an error of the server, an object with invalid fields, or no JSON at all.
            pass
        event = parse_event(line, self._about)
        return self._read_object(event.type, event.object)

    def read_page(self, body: bytes) -> Page[Reading[T]]:
        """Decodes one page of a list."""
        if self._declares_identity:
            try:
                page = self._page_decoder.decode(body)
            except msgspec.DecodeError:
                # Decoded one by one below, all items but the invalid ones are readable.
                pass
            else:
                items = [self._reading(ADDED, each.metadata, each) for each in page.items or ()]
                return Page(page.metadata, items)
        try:
            undecoded = _undecoded_page.decode(body)
        except msgspec.DecodeError as error:
            raise invalid_response(body, self._about) from error
        return Page(undecoded.metadata, [self._read_object(ADDED, each) for each in undecoded.items or ()])

    def _read_object(self, event_type: str, raw: msgspec.Raw) -> Reading[T]:
        try:
            metadata = _object_decoder.decode(raw).metadata
        except msgspec.DecodeError as error:
            raise invalid_response(bytes(raw), self._about) from error
        if event_type == BOOKMARK:
            return Reading(BOOKMARK, ("", ""), metadata.resource_version, None, raw)
        try:
            return self._reading(event_type, metadata, self._object_decoder.decode(raw))
        except msgspec.ValidationError as error:
            key = metadata.namespace, metadata.name
            return Reading(event_type, key, metadata.resource_version, None, raw, str(error))

    @staticmethod
    def _reading(event_type: str, metadata: Any, item: Any) -> Reading[Any]:
        return Reading(event_type, (metadata.namespace, metadata.name), metadata.resource_version, item)


def declares_identity(type_: type) -> bool:
    """Whether a type keeps name, namespace and resourceVersion as its objects have them.

    A `__post_init__` may drop one of them.
    """
    if not isinstance(type_, type) or not issubclass(type_, msgspec.Struct):
        return False
    metadata = {each.name: each.type for each in msgspec.structs.fields(type_)}.get("metadata")
    if not isinstance(metadata, type) or not issubclass(metadata, msgspec.Struct) or hasattr(metadata, "__post_init__"):
        return False
    return {each.encode_name for each in msgspec.structs.fields(metadata)} >= _IDENTITY


_identity_decoder = msgspec.json.Decoder(_TypedEvent[ObjectIdentity])
_object_decoder = msgspec.json.Decoder(ObjectIdentity)
_undecoded_page = msgspec.json.Decoder(Page[msgspec.Raw])
