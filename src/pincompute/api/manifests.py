"""Our kinds as Kubernetes knows them: each struct becomes a structural schema with a description on every field."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.api.kinds import KINDS
from pincompute.api.names import CATEGORY, GROUP, VERSION
from pincompute.api.noun import Noun
from pincompute.api.wire import Open
from pincompute.objects.content import Object

_OPEN = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"


def crds() -> list[Object]:
    """One CustomResourceDefinition a kind."""
    return [_crd(kind) for kind in KINDS.values()]


def _crd(kind: type[Noun]) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural()}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster" if kind.CLUSTER_WIDE else "Namespaced",
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


def _version(kind: type[Noun]) -> Object:
    summary = (kind.__doc__ or "").strip()
    properties = {"metadata": {"type": "object"}, "spec": structural(kind.spec_type())}
    status = kind.status_type()
    if status is not None:
        properties["status"] = structural(status)
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
                        "message": f"a name has at most {kind.MAX_NAME} {kind.NAME_WORDS}",
                    },
                    {
                        "rule": f"size(self.metadata.name) <= {kind.MAX_NAME}",
                        "message": f"a name has at most {kind.MAX_NAME} letters",
                    },
                    *({"rule": rule.cel, "message": rule.message} for rule in kind.RULES),
                ],
            }
        },
        "subresources": {"status": {}} if status is not None else {},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} for name, type_, path in kind.COLUMNS
        ],
    }
    if kind.SCALES:
        version["subresources"]["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return version


def structural(type_: Any) -> Object:
    """The struct's JSON schema without references: Kubernetes wants it written out."""
    (top,), shared = msgspec.json.schema_components([type_], ref_template="{name}")
    for struct in shapes():
        _, more = msgspec.json.schema_components([struct], ref_template="{name}")
        shared |= more
    for each in shapes():
        shared[each.__name__] = _undecided(shared[each.__name__])
    return _inline(top, shared)


def _undecided(shape: Object) -> Object:
    """Kubernetes fills in its own defaults: written into a template, they would pass for what a person said."""
    properties = {
        name: {key: value for key, value in each.items() if key != "default"}
        for name, each in shape["properties"].items()
    }
    return {**shape, "properties": properties}


def shapes() -> list[type[Open]]:
    """Kubernetes' own, each under its name: fields that are not described live on."""
    return Open.__subclasses__()


def _inline(schema: Any, shared: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(each, shared) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        described = {key: value for key, value in schema.items() if key != "$ref"}
        open_ = {_OPEN: True} if schema["$ref"] in {each.__name__ for each in shapes()} else {}
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
    """Without what a structural schema refuses, and without defaults that only say "empty"."""
    if key in {"default", "required"}:
        return bool(value)
    return key != "title" and (key, value) not in (("additionalProperties", False), ("additionalProperties", {}))


def _inline_value(key: str, value: Any, shared: dict[str, Any]) -> Any:
    if key == "properties":
        # Names of fields are no schema keywords, even where they are spelled the same.
        return {name: _inline(each, shared) for name, each in value.items()}
    return _inline(value, shared)


def _without_null(schema: Object) -> Object:
    """An optional field: Kubernetes says absence by leaving the field out."""
    (only,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return {key: value for key, value in schema.items() if key not in {"anyOf", "default"}} | only
