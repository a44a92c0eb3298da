"""Kubernetes objects in documents, such as a rendered chart: lists are expanded, and Secrets are dropped at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pincompute.api.documents import Document, shorten
from pincompute.base.problem import Problem
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object
from pincompute.planning.migration.native_import import API_VERSIONS
from pincompute.planning.migration.survey import RELATED_KINDS

MAX_OBJECTS = 10_000
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_MAX_QUOTED_CHARS = 60


class NativeObjects(NamedTuple):
    """The objects that an import reads, and what is left."""

    objects: tuple[Object, ...]
    ignored: dict[str, int]
    """Number of the other objects, by kind."""
    problems: tuple[Problem, ...] = ()


def read_natives(documents: Iterable[Document], namespace: str) -> NativeObjects:
    """`namespace` is that of objects without one. A kind and name that occurs twice is refused."""
    objects: dict[tuple[str, str, str], Object] = {}
    ignored: dict[str, int] = {}
    problems: list[Problem] = []
    for document, item in _expand_lists(documents, problems):
        kind = item.get("kind")
        if not isinstance(kind, str) or kind not in RELATED_KINDS | API_VERSIONS.keys():
            # The content of a Secret goes no further than here.
            label = shorten(repr(kind) if not str(kind).isalnum() else str(kind), _MAX_QUOTED_CHARS)
            ignored[label] = ignored.get(label, 0) + 1
            continue
        metadata = item.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        name, place = named.get("name"), named.get("namespace") or namespace
        if not _is_name(name) or not _is_name(place):
            wrong = shorten(repr(name if not _is_name(name) else place), _MAX_QUOTED_CHARS)
            problems.append(Problem(DOCUMENT_INVALID, f"invalid name {wrong} of a {kind}", document.where("metadata")))
        elif not isinstance(item.get("spec", {}), dict):
            problems.append(Problem(DOCUMENT_INVALID, f"the spec of {kind}/{name} must be a mapping", document.where()))
        elif (kind, place, name) in objects:
            problems.append(Problem(DOCUMENT_INVALID, f"{kind}/{name} occurs twice in {place}", document.where()))
        elif len(objects) >= MAX_OBJECTS:
            problems.append(Problem(DOCUMENT_INVALID, f"more than {MAX_OBJECTS:,} objects", document.where()))
            break
        else:
            objects[kind, place, str(name)] = _completed(item, place)
    return NativeObjects(tuple(objects.values()), ignored, tuple(problems))


def _expand_lists(documents: Iterable[Document], problems: list[Problem]) -> Iterator[tuple[Document, Object]]:
    """The objects of the documents. `kubectl get -o yaml` writes a List; one inside another is never valid."""
    for document in documents:
        content = document.content
        items = content.get("items")
        if not _is_list(content):
            yield document, content
            continue
        if not isinstance(items, list):
            problems.append(Problem(DOCUMENT_INVALID, "items of a List must be a list", document.where("items")))
            continue
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                problems.append(
                    Problem(DOCUMENT_INVALID, "an item of a List must be a mapping", document.where("items", index))
                )
            elif _is_list(item):
                problems.append(Problem(DOCUMENT_INVALID, "a List inside a List", document.where("items", index)))
            else:
                yield document, item


def _is_list(content: Object) -> bool:
    kind = content.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and "items" in content


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def _completed(item: Object, namespace: str) -> Object:
    """The object with its namespace, and without labels and annotations that are null."""
    metadata = {name: value for name, value in item["metadata"].items() if value is not None}
    return {"spec": {}, **item, "metadata": {**metadata, "namespace": namespace}}
