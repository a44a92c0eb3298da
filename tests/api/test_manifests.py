"""The CRDs have structural schemas, and a description for every field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pincompute.api.manifests import crds

ROOT = Path(__file__).parents[2]
SCHEMAS = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}

PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
"""Set on embedded Kubernetes types and free-form fields, which have no bounds."""
INT_OR_STRING = "x-kubernetes-int-or-string"
SECTIONS = ("spec", "status")
EXAMPLE = re.compile(r"such as|Follows from|default|: |, .* or |[A-Z][a-z]+, ")
"""An example, a default, or the list of all values."""


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every named field, at any depth."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
    for step, each in children(schema, path):
        yield from properties(each, step)


def children(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Schemas one level down: fields, and the entries of lists and mappings."""
    yield from ((f"{path}.{name}", each) for name, each in schema.get("properties", {}).items())
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield f"{path}[]", schema[key]


def bounded_schemas(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every schema except free-form ones and those inside them."""
    if schema.get(PRESERVE_UNKNOWN):
        return
    yield path, schema
    for step, each in children(schema, path):
        yield from bounded_schemas(each, step)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_has_description(kind: str) -> None:
    schema = SCHEMAS[kind]
    assert schema["description"]
    for part in SECTIONS:
        for path, each in properties(schema["properties"][part], part):
            assert each.get("description"), f"{kind} {path} has no description"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_spec_field_has_example_or_default(kind: str) -> None:
    vague = [
        f"{kind} {path}: {each['description']}"
        for path, each in properties(SCHEMAS[kind]["properties"]["spec"], "spec")
        if "properties" not in each and not EXAMPLE.search(each["description"])
    ]
    assert vague == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_structural(kind: str) -> None:
    for part in SECTIONS:
        for path, each in bounded_schemas(SCHEMAS[kind]["properties"][part], part):
            assert each.get("type") or each.get(INT_OR_STRING), f"{kind} {path} has no type"
            assert not {"$ref", "anyOf", "title"} & each.keys(), f"{kind} {path}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_spec_field_is_bounded(kind: str) -> None:
    """Kubernetes estimates the cost of CEL rules from the bounds, and rejects a CRD without them."""
    bounds = {"array": "maxItems", "integer": "maximum", "string": "maxLength"}
    for path, each in bounded_schemas(SCHEMAS[kind]["properties"]["spec"], "spec"):
        if each.get("type") == "object":
            assert "properties" in each or "maxProperties" in each, f"{kind} {path} may hold any number of entries"
        elif each.get("type") != "boolean" and "enum" not in each:
            assert bounds[each.get("type", "string")] in each, f"{kind} {path} has no bound"


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_printer_columns_and_names_follow_conventions(crd: Any) -> None:
    (version,) = crd["spec"]["versions"]
    columns = [each["name"] for each in version["additionalPrinterColumns"]]
    assert len(columns) <= 6
    assert columns[-1] == "Age"
    assert crd["spec"]["names"]["shortNames"]
    assert version["subresources"]["status"] == {}


def test_short_names_are_unique() -> None:
    names = [name for crd in crds() for name in crd["spec"]["names"]["shortNames"]]
    assert len(names) == len(set(names))
