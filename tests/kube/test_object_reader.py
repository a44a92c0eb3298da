"""Decoding of listed and watched objects: the same results by one pass as by several, whatever the server sends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.kube.errors import ApiError, Gone
from pincompute.kube.object_reader import ObjectReader, Reading, declares_identity


class FullMetadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class PartialMetadata(msgspec.Struct):
    labels: dict[str, str] = {}


class DroppingMetadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""

    def __post_init__(self) -> None:
        self.resource_version = ""


class WithIdentity(msgspec.Struct):
    metadata: FullMetadata
    size: int = 0


class WithoutIdentity(msgspec.Struct):
    metadata: PartialMetadata
    size: int = 0


class WithDroppedVersion(msgspec.Struct):
    metadata: DroppingMetadata
    size: int = 0


class WithoutMetadata(msgspec.Struct):
    size: int = 0


TYPES = [WithIdentity, WithoutIdentity, WithDroppedVersion, WithoutMetadata]


def widget(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "me", "resourceVersion": "7", "labels": {}}, **fields}


def event_line(event_type: str, item: Any) -> bytes:
    return msgspec.json.encode({"type": event_type, "object": item})


@pytest.fixture(params=TYPES)
def reader(request: pytest.FixtureRequest) -> ObjectReader[Any]:
    return ObjectReader(request.param, "widgets me")


def test_only_a_kept_identity_is_declared() -> None:
    assert [declares_identity(each) for each in TYPES] == [True, False, False, False]
    assert not declares_identity(dict)


@pytest.mark.parametrize("event_type", ["ADDED", "MODIFIED", "DELETED"])
def test_reads_identity_and_declared_fields(reader: ObjectReader[Any], event_type: str) -> None:
    reading = reader.read_line(event_line(event_type, widget("a", size=3, other=[{"size": 4}])))
    assert reading[:3] == (event_type, ("me", "a"), "7")
    assert reading.item is not None
    assert reading.item.size == 3


def test_invalid_field_is_reported_with_its_object(reader: ObjectReader[Any]) -> None:
    item = widget("a", size="large")
    reading = reader.read_line(event_line("MODIFIED", item))
    assert (reading.type, reading.key, reading.resource_version, reading.item) == ("MODIFIED", ("me", "a"), "7", None)
    assert (msgspec.json.decode(reading.raw), "$.size" in reading.error) == (item, True)


def test_bookmark_has_a_version_and_no_object(reader: ObjectReader[Any]) -> None:
    metadata = {"resourceVersion": "9", "creationTimestamp": None}
    reading = reader.read_line(event_line("BOOKMARK", {"kind": "Widget", "metadata": metadata}))
    assert (reading.type, reading.resource_version, reading.item) == ("BOOKMARK", "9", None)


def test_bookmark_that_looks_like_an_object_is_a_bookmark(reader: ObjectReader[Any]) -> None:
    assert reader.read_line(event_line("BOOKMARK", widget("a", size=3))).item is None


def test_error_of_the_server_is_raised(reader: ObjectReader[Any]) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old", "metadata": {"name": "a"}}
    with pytest.raises(Gone):
        reader.read_line(event_line("ERROR", status))


@pytest.mark.parametrize(
    "line", [b"", b"<h1>Bad Gateway</h1>", b'{"type":"ADDED"}', b"[]", b'{"type":"ADDED","object":7}',
             b'{"type":"ADDED","object":{"metadata":{"name":7}}}', b'{"type":"ADDED","object":{"metadata":{"name":"a"}']
)  # fmt: skip
def test_anything_else_is_an_invalid_response(reader: ObjectReader[Any], line: bytes) -> None:
    with pytest.raises(ApiError):
        reader.read_line(line)


def test_annotation_is_not_taken_for_the_version(reader: ObjectReader[Any]) -> None:
    """An annotation may have this name, and stands before the field in a custom resource."""
    item = {"metadata": {"annotations": {"resourceVersion": "99"}, "name": "a", "resourceVersion": "7"}}
    assert reader.read_line(event_line("ADDED", item)).resource_version == "7"


def listed(*items: Any) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": "9", "continue": "next"}, "items": items})


def test_page_has_its_items_and_where_it_continues(reader: ObjectReader[Any]) -> None:
    page = reader.read_page(listed(widget("a", size=3), widget("b")))
    assert (page.metadata.resource_version, page.metadata.continue_) == ("9", "next")
    assert [(each.type, each.key, each.item and each.item.size) for each in page.items or ()] == [
        ("ADDED", ("me", "a"), 3), ("ADDED", ("me", "b"), 0)
    ]  # fmt: skip


def test_one_invalid_item_does_not_hide_the_others(reader: ObjectReader[Any]) -> None:
    items: list[Reading[Any]] = reader.read_page(listed(widget("a", size="x"), widget("b", size=2))).items or []
    assert [(each.key[1], each.item and each.item.size, bool(each.error)) for each in items] == [
        ("a", None, True), ("b", 2, False)
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"[]", b'{"metadata":{},"items":[7]}', b'{"items":[]}'])
def test_page_of_anything_else_is_an_invalid_response(reader: ObjectReader[Any], body: bytes) -> None:
    with pytest.raises(ApiError):
        reader.read_page(body)


def test_page_without_items_is_empty(reader: ObjectReader[Any]) -> None:
    assert not reader.read_page(b'{"metadata":{"resourceVersion":"9"},"items":null}').items
