"""Our kinds as Kubernetes knows them: each struct becomes a structural schema with a description on every field."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.names import CATEGORY, GROUP, VERSION
from pincompute.api.service import KINDS, PinterestService
from pincompute.api.workload import MAX_NAME, Status
from pincompute.objects.content import Object


def crds() -> list[Object]:
    """One CustomResourceDefinition a kind."""
    return [_crd(kind) for kind in KINDS.values()]


def _crd(kind: type[PinterestService]) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.KIND,
                "listKind": f"{kind.KIND}List",
                "plural": kind.PLURAL,
                "singular": kind.SINGULAR,
                "shortNames": list(kind.SHORT_NAMES),
                "categories": [CATEGORY],
            },
            "versions": [_version(kind)],
        },
    }


def _version(kind: type[PinterestService]) -> Object:
    summary = (kind.__doc__ or "").strip()
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": f"{kind.KIND}: {summary}",
                "required": ["spec"],
                "properties": {
                    "metadata": {"type": "object"},
                    "spec": structural(_spec(kind)),
                    "status": structural(Status),
                },
                "x-kubernetes-validations": [
                    {
                        "rule": f"size(self.metadata.name) <= {MAX_NAME}",
                        "message": f"a name has at most {MAX_NAME} letters",
                    }
                ],
            }
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} for name, type_, path in kind.COLUMNS
        ],
    }


def _spec(kind: type[PinterestService]) -> type:
    (spec,) = [field.type for field in msgspec.structs.fields(kind) if field.name == "spec"]
    return spec


def structural(type_: Any) -> Object:
    """The struct's JSON schema without references: Kubernetes wants it written out."""
    (top,), shared = msgspec.json.schema_components([type_], ref_template="{name}")
    return _inline(top, shared)


def _inline(schema: Any, shared: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(each, shared) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        described = {key: value for key, value in schema.items() if key != "$ref"}
        return _inline({**shared[schema["$ref"]], **described}, shared)
    if "anyOf" in schema:
        return _inline(_without_null(schema), shared)
    return {key: _inline_value(key, value, shared) for key, value in schema.items() if _kept(key, value)}


def _kept(key: str, value: Any) -> bool:
    """Without what a structural schema refuses, and without defaults that only say "empty"."""
    if key in {"default", "required"}:
        return bool(value)
    return key != "title" and (key, value) != ("additionalProperties", False)


def _inline_value(key: str, value: Any, shared: dict[str, Any]) -> Any:
    if key == "properties":
        # Names of fields are no schema keywords, even where they are spelled the same.
        return {name: _inline(each, shared) for name, each in value.items()}
    return _inline(value, shared)


def _without_null(schema: Object) -> Object:
    """An optional field: Kubernetes says absence by leaving the field out."""
    (only,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return {key: value for key, value in schema.items() if key not in {"anyOf", "default"}} | only
