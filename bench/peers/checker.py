"""Neutral checker: compares a cluster with `expected.yaml`, and the clusters of two contenders.

It knows no contender. A workload has converged when all of its objects are as expected, and there is no other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import yaml

from pincompute.api.names import TEMPLATE_HASH_LABEL, WORKLOAD_LABEL
from pincompute.objects.content import Object

SERVICE = "PinterestService"
_EXPECTED: dict[str, list[Object]] = yaml.safe_load((Path(__file__).parent / "expected.yaml").read_text())
_KIND_OF_REVISIONS = "ConfigMap"
_MARKS = frozenset({TEMPLATE_HASH_LABEL, "clusterIP", "clusterIPs"})


class Service(NamedTuple):
    """A service as its user last wrote it."""

    name: str
    namespace: str
    image: str
    revision: int


def differences(services: Sequence[Service], cluster: Mapping[str, Sequence[Object]]) -> list[str]:
    """Objects that are missing, different or unexpected, one line each. `cluster` has the objects by kind."""
    found = {(kind, each["metadata"]["name"]): each for kind, objects in cluster.items() for each in objects}
    lines: list[str] = []
    expected_names: set[tuple[str, str]] = set()
    for service in services:
        owner = found.get((SERVICE, service.name), {})
        for kind, wanted in expected_objects(service, owner.get("metadata", {}).get("generation", 0)):
            name = wanted["metadata"]["name"]
            expected_names.add((kind, name))
            lines += object_differences(f"{kind}/{name}", wanted, found.get((kind, name)), owner)
    return [*lines, *(f"{kind}/{name}: not expected" for kind, name in found.keys() - expected_names)]


def expected_objects(service: Service, generation: int) -> Iterator[tuple[str, Object]]:
    values = {**service._asdict(), "generation": generation}
    for kind, templates in _EXPECTED.items():
        numbers = range(1, service.revision + 1) if kind == _KIND_OF_REVISIONS else (0,)
        for number in numbers:
            for template in templates:
                yield kind, _filled(template, {**values, "number": str(number)})


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its variables replaced. A variable alone keeps its type."""
    if isinstance(template, dict):
        return {_filled(name, values): _filled(each, values) for name, each in template.items()}
    if isinstance(template, list):
        return [_filled(each, values) for each in template]
    if not isinstance(template, str) or "$" not in template:
        return template
    return values.get(template[1:], Template(template).substitute(values))


def object_differences(label: str, wanted: Object, found: Object | None, owner: Object) -> Iterator[str]:
    if found is None:
        yield f"{label}: missing"
        return
    for path in missing_paths(wanted, found):
        yield f"{label}: {path} differs"
    if found is owner:
        return
    metadata = found["metadata"]
    uids = [each["uid"] for each in metadata.get("ownerReferences", ()) if each.get("controller")]
    if uids != [owner.get("metadata", {}).get("uid")]:
        yield f"{label}: not controlled by the service"
    if metadata.get("labels", {}).get(WORKLOAD_LABEL) != owner["metadata"]["name"]:
        yield f"{label}: not labelled"


def missing_paths(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Paths of the wanted values that are not found. Lists are compared whole, item by item."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            yield from missing_paths(value, found.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (first, second) in enumerate(zip(wanted, found, strict=True)):
            yield from missing_paths(first, second, f"{path}[{index}]")
    elif wanted != found:
        yield path


def comparable(value: Object) -> Object:
    """The object without what differs between two equal ones: identity, times, addresses, hashes and field managers."""
    metadata = value["metadata"]
    kept = {"name": metadata["name"], "labels": metadata.get("labels", {})}
    body = {name: content for name, content in value.items() if name not in {"metadata", "status", "apiVersion"}}
    return _without_marks({"metadata": kept, **body})


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name not in _MARKS}
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    return value


def clusters_differ(ours: Mapping[str, Sequence[Object]], theirs: Mapping[str, Sequence[Object]]) -> list[str]:
    """Objects of two clusters that differ, with all the fields that the API server has filled in."""
    first, second = (
        {(kind, each["metadata"]["name"]): comparable(each) for kind, objects in cluster.items() for each in objects}
        for cluster in (ours, theirs)
    )
    return [
        f"{kind}/{name}: {', '.join(missing_paths(first.get((kind, name)), second.get((kind, name)))) or 'more fields'}"
        for kind, name in sorted(first.keys() | second.keys())
        if first.get((kind, name)) != second.get((kind, name))
    ]
