"""CRDs of our kinds. Each struct becomes a structural schema with a description for every field."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS
from pincompute.api.names import CATEGORY, GROUP, VERSION
from pincompute.api.structs import OpenStruct
from pincompute.objects.content import Object

_OPEN = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"


def crds() -> list[Object]:
    """One CustomResourceDefinition for each kind."""
    return [_crd(kind) for kind in KINDS.values()]


def _crd(kind: type[CustomResource]) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural()}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster" if kind.CLUSTER_SCOPED else "Namespaced",
            "names": {
                "kind": kind.__name__,
                "listKind": f"{kind.__name__}List",
                "plural": kind.plural(),
                "singular": kind.__name__.lower(),
                "shortNames": list(kind.SHORT_NAMES),
                "categories": [CATEGORY],
            },
            "versions": [_version(kind)],
        },
    }


def _version(kind: type[CustomResource]) -> Object:
    summary = (kind.__doc__ or "").strip()
    properties = {"metadata": {"type": "object"}, "spec": structural_schema(kind.spec_type())}
    status = kind.status_type()
    if status is not None:
        properties["status"] = structural_schema(status)
    version: Object = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": f"{kind.__name__}: {summary}",
                "required": ["spec"],
                "properties": properties,
                "x-kubernetes-validations": [
                    {
                        "rule": f"self.metadata.name.matches('{kind.NAME_PATTERN}')",
                        "message": f"a name has at most {kind.MAX_NAME_LENGTH} {kind.NAME_RULE}",
                    },
                    {
                        "rule": f"size(self.metadata.name) <= {kind.MAX_NAME_LENGTH}",
                        "message": f"a name has at most {kind.MAX_NAME_LENGTH} characters",
                    },
                    *({"rule": rule.cel, "message": rule.message} for rule in kind.VALIDATION_RULES),
                ],
            }
        },
        "subresources": {"status": {}} if status is not None else {},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} for name, type_, path in kind.PRINTER_COLUMNS
        ],
    }
    if kind.SCALABLE:
        version["subresources"]["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return version


def structural_schema(type_: Any) -> Object:
    """JSON schema of a struct with references inlined, as Kubernetes requires."""
    (top,), shared = msgspec.json.schema_components([type_], ref_template="{name}")
    for struct in open_structs():
        _, more = msgspec.json.schema_components([struct], ref_template="{name}")
        shared |= more
    for each in open_structs():
        shared[each.__name__] = _undecided(shared[each.__name__])
    return _inline(top, shared)


def _undecided(shape: Object) -> Object:
    """Drop defaults from embedded Kubernetes types: the API server would write them into templates as if the user
    had set them."""
    properties = {
        name: {key: value for key, value in each.items() if key != "default"}
        for name, each in shape["properties"].items()
    }
    return {**shape, "properties": properties}


def open_structs() -> list[type[OpenStruct]]:
    """Embedded Kubernetes types, by name. Their undescribed fields are preserved."""
    return OpenStruct.__subclasses__()


def _inline(schema: Any, shared: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(each, shared) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        described = {key: value for key, value in schema.items() if key != "$ref"}
        open_ = {_OPEN: True} if schema["$ref"] in {each.__name__ for each in open_structs()} else {}
        return _inline({**shared[schema["$ref"]], **described, **open_}, shared)
    if schema.get(_EITHER):
        return {key: value for key, value in schema.items() if key not in {"anyOf", "type"} and _kept(key, value)}
    if "anyOf" in schema:
        return _inline(_without_null(schema), shared)
    inlined = {key: _inline_value(key, value, shared) for key, value in schema.items() if _kept(key, value)}
    if "enum" in inlined:
        inlined.setdefault("type", "string")
    anything = inlined.get("type") == "object" and not {"properties", "additionalProperties"} & inlined.keys()
    return {**inlined, _OPEN: True} if anything else inlined


def _kept(key: str, value: Any) -> bool:
    """Filter keywords that a structural schema forbids, and empty defaults."""
    if key in {"default", "required"}:
        return bool(value)
    return key != "title" and (key, value) not in (("additionalProperties", False), ("additionalProperties", {}))


def _inline_value(key: str, value: Any, shared: dict[str, Any]) -> Any:
    if key == "properties":
        # Names of fields are no schema keywords, even where they are spelled the same.
        return {name: _inline(each, shared) for name, each in value.items()}
    return _inline(value, shared)


def _without_null(schema: Object) -> Object:
    """Optional field without its null alternative: in Kubernetes an optional field is left out, not null."""
    (only,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return {key: value for key, value in schema.items() if key not in {"anyOf", "default"}} | only
