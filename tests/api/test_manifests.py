"""The CRDs: structural, and described to the last field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pincompute.api.manifests import crds

ROOT = Path(__file__).parents[2]
SCHEMAS = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}

OPEN = "x-kubernetes-preserve-unknown-fields"
"""Kubernetes' own, or anything at all: every field of it survives, and none is bounded."""
EITHER = "x-kubernetes-int-or-string"
OURS = ("spec", "status")
EXAMPLE = re.compile(r"such as|Follows from|default|: |, .* or |[A-Z][a-z]+, ")
"""An example, what it is by default, or all that it can be."""


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every named field, at any depth."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
    for step, each in inside(schema, path):
        yield from properties(each, step)


def inside(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What lies one level down: fields, and the entries of lists and mappings."""
    yield from ((f"{path}.{name}", each) for name, each in schema.get("properties", {}).items())
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield f"{path}[]", schema[key]


def nodes(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every schema that there is, but for what lies in the open."""
    if schema.get(OPEN):
        return
    yield path, schema
    for step, each in inside(schema, path):
        yield from nodes(each, step)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_at_every_depth_is_described(kind: str) -> None:
    schema = SCHEMAS[kind]
    assert schema["description"]
    for part in OURS:
        for path, each in properties(schema["properties"][part], part):
            assert each.get("description"), f"{kind} {path} has no description"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_value_that_a_person_writes_has_an_example_or_a_default(kind: str) -> None:
    vague = [
        f"{kind} {path}: {each['description']}"
        for path, each in properties(SCHEMAS[kind]["properties"]["spec"], "spec")
        if "properties" not in each and not EXAMPLE.search(each["description"])
    ]
    assert vague == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_structural(kind: str) -> None:
    for part in OURS:
        for path, each in nodes(SCHEMAS[kind]["properties"][part], part):
            assert each.get("type") or each.get(EITHER), f"{kind} {path} has no type"
            assert not {"$ref", "anyOf", "title"} & each.keys(), f"{kind} {path}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_everything_that_a_person_writes_is_bounded(kind: str) -> None:
    """Without bounds the cost of a rule over a field cannot be known, and Kubernetes refuses the CRD."""
    bounds = {"array": "maxItems", "integer": "maximum", "string": "maxLength"}
    for path, each in nodes(SCHEMAS[kind]["properties"]["spec"], "spec"):
        if each.get("type") == "object":
            assert "properties" in each or "maxProperties" in each, f"{kind} {path} may hold any number of entries"
        elif each.get("type") != "boolean" and "enum" not in each:
            assert bounds[each.get("type", "string")] in each, f"{kind} {path} has no bound"


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_columns_and_names_by_the_conventions(crd: Any) -> None:
    (version,) = crd["spec"]["versions"]
    columns = [each["name"] for each in version["additionalPrinterColumns"]]
    assert len(columns) <= 6
    assert columns[-1] == "Age"
    assert crd["spec"]["names"]["shortNames"]
    assert version["subresources"]["status"] == {}


def test_no_short_name_is_given_twice() -> None:
    names = [name for crd in crds() for name in crd["spec"]["names"]["shortNames"]]
    assert len(names) == len(set(names))
