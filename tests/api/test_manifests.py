"""The CRDs: structural, and described to the last field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pincompute.api.manifests import crds

ROOT = Path(__file__).parents[2]
SCHEMAS = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}


def fields(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from fields(each, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], f"{path}[]")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_is_described_with_an_example(kind: str) -> None:
    for path, schema in fields(SCHEMAS[kind]):
        if path in {".metadata", ".spec", ".status"}:
            continue
        assert schema.get("description"), f"{kind}{path} has no description"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_structural(kind: str) -> None:
    for path, schema in fields(SCHEMAS[kind]):
        assert schema.get("type"), f"{kind}{path} has no type"
        assert not {"$ref", "anyOf", "title"} & schema.keys(), f"{kind}{path}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_everything_that_a_person_writes_is_bounded(kind: str) -> None:
    """Without bounds the cost of a rule over a field cannot be known, and Kubernetes refuses the CRD."""
    for path, schema in fields(SCHEMAS[kind]["properties"]["spec"]):
        bound = {"array": "maxItems", "object": "maxProperties", "integer": "maximum", "string": "maxLength"}
        if "[]" not in path and schema["type"] != "boolean":
            assert bound[schema["type"]] in schema, f"{kind}{path}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_no_default_of_kubernetes_passes_for_what_a_person_wrote(kind: str) -> None:
    template = SCHEMAS[kind]["properties"]["spec"]["properties"].get("template", {})
    assert [path for path, schema in fields(template) if "default" in schema] == []


def test_the_manifests_that_lie_in_the_repository_are_these() -> None:
    assert list(yaml.safe_load_all((ROOT / "deploy" / "crds.yaml").read_text())) == crds()
