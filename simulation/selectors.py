"""Label and field selectors of lists and watches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Self

from pincompute.kube.resource import Object, Resource


class Selector(NamedTuple):
    """The objects that one list or watch returns."""

    namespace: str
    labels: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, resource: Resource, namespace: str, query: Mapping[str, str]) -> Self:
        fields = [each.split("=", 1) for each in query.get("fieldSelector", "").split(",") if each]
        labels = tuple(each.strip() for each in query.get("labelSelector", "").split(",") if each)
        return cls(namespace if resource.namespaced else "", labels, tuple((name, value) for name, value in fields))

    def matches(self, value: Object) -> bool:
        metadata = value["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        return labels_match(metadata.get("labels") or {}, self.labels) and all(
            _field_text(value, path) == wanted for path, wanted in self.fields
        )


def labels_match(labels: Mapping[str, str], wanted: tuple[str, ...]) -> bool:
    return all(map(partial(_requirement_matches, labels), wanted))


def _requirement_matches(labels: Mapping[str, str], wanted: str) -> bool:
    if "!=" in wanted:
        name, _, value = wanted.partition("!=")
        return labels.get(name) != value
    if "=" in wanted:
        name, _, value = wanted.replace("==", "=").partition("=")
        return labels.get(name) == value
    return wanted[1:] not in labels if wanted.startswith("!") else wanted in labels


def _field_text(value: Any, path: str) -> str:
    for name in path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    return str(value)
