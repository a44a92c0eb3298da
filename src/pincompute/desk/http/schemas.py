"""Types as JSON schemas. The docstrings below the fields of a struct become descriptions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.manifests import open_structs
from pincompute.api.names import API_VERSION
from pincompute.api.structs import Metadata, struct_fields
from pincompute.api.workload import Workload
from pincompute.objects.content import Object

_COMPONENTS = "#/components/schemas/"
_API_PACKAGE = "pincompute.api."
_WORKLOAD, _WORKLOAD_DOCUMENT, _DOCUMENT = Workload.__name__, "WorkloadDocument", "Document"


class Schemas(NamedTuple):
    """The schemas of the requested types, in order, and the components to which they refer."""

    requested: list[Object]
    components: dict[str, Object]


def schema_ref(name: str) -> Object:
    return {"$ref": f"{_COMPONENTS}{name}"}


def collect_schemas(types: Iterable[Any]) -> Schemas:
    """Every kind is among the components twice: the resource in the cluster, and the document that users write."""
    types, always = list(types), [*KINDS.values(), *open_structs()]
    wanted = [*always, *(dict[str, Any] if each is Workload else each for each in types)]
    found, components = msgspec.json.schema_components(wanted, ref_template=f"{_COMPONENTS}{{name}}")
    for struct in _structs_in(*always, *types):
        for name in (struct.__name__, f"{struct.__module__}.{struct.__qualname__}"):
            if name in components and components[name].get("title") == struct.__name__:
                _add_descriptions(components[name], struct)
    for resource in KINDS.values():
        _add_kind(components[resource.__name__], resource)
        components[f"{resource.__name__}{_DOCUMENT}"] = _document_schema(resource)
    components[_WORKLOAD] = _one_of("A workload, as the cluster has it.", WORKLOADS, "")
    components[_WORKLOAD_DOCUMENT] = _one_of("A workload file.", WORKLOADS, _DOCUMENT)
    components[_DOCUMENT] = _one_of("A file of any kind that can be previewed.", KINDS, _DOCUMENT)
    requested = [
        schema_ref(_WORKLOAD) if type_ is Workload else schema
        for type_, schema in zip(types, found[len(always) :], strict=True)
    ]
    return Schemas(
        [_shorten_refs(each) for each in requested],
        {_short_name(name): _shorten_refs(components[name]) for name in sorted(components)},
    )


def _shorten_refs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_shorten_refs(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _shorten_refs(each) for name, each in schema.items()}
    if isinstance(found.get("$ref"), str):
        found["$ref"] = f"{_COMPONENTS}{_short_name(found['$ref'])}"
    return found


def _short_name(name: str) -> str:
    """msgspec names two structs of the same name with their modules: without the package that all have in common."""
    return name.removeprefix(_COMPONENTS).removeprefix(_API_PACKAGE)


def field_descriptions(struct: type) -> dict[str, str]:
    """The docstrings of a struct's fields, including inherited ones."""
    found: dict[str, str] = {}
    for class_ in reversed(struct.__mro__):
        if class_.__module__.startswith((_API_PACKAGE, "pincompute.desk.")):
            found |= dict(_field_docstrings(class_))
    return found


def _field_docstrings(struct: type) -> Iterator[tuple[str, str]]:
    try:
        source = inspect.getsource(struct)
    except OSError:
        # Installed without sources: the schema has no descriptions.
        return
    (tree,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Constant):
            yield field.target.id, " ".join(str(text.value).split())


def _add_descriptions(schema: Object, struct: type) -> None:
    descriptions = field_descriptions(struct)
    for field in struct_fields(struct):
        if field.name in descriptions:
            schema["properties"][field.encode_name].setdefault("description", descriptions[field.name])


def _structs_in(*types: Any) -> set[type]:
    """All structs that occur in types, however deep."""
    found: set[type] = set()
    remaining: list[Any] = list(types)
    while remaining:
        type_ = remaining.pop()
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct) and type_ not in found:
            found.add(type_)
            remaining += [field.type for field in struct_fields(type_)]
        remaining += [inner for inner in getattr(type_, "__args__", ()) if inner is not Ellipsis]
    return found


def _add_kind(schema: Object, resource: type[CustomResource]) -> None:
    """Distinguishes the kinds of a `oneOf`."""
    schema["properties"] |= {"kind": {"const": resource.__name__}, "apiVersion": {"const": API_VERSION}}
    schema["required"] = sorted({*schema["required"], "kind", "apiVersion"})


def _document_schema(resource: type[CustomResource]) -> Object:
    """The schema of a file: its metadata has only what users may set."""
    labels = {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
    metadata = {
        "name": {"type": "string", "pattern": resource.NAME_PATTERN, "maxLength": resource.MAX_NAME_LENGTH},
        "project": {"type": "string", "description": "Default: the project in the URL."},
        "namespace": {"type": "string", "description": "The same as `project`, in the word of Kubernetes."},
        "labels": labels,
        "annotations": labels,
    }
    assert metadata.keys() - {"project"} <= {each.encode_name for each in struct_fields(Metadata)}
    closed = {"type": "object", "additionalProperties": False}
    spec = msgspec.json.schema_components([resource.spec_type()], ref_template=f"{_COMPONENTS}{{name}}")[0][0]
    return {
        **closed,
        "title": resource.__name__,
        "description": f"{(resource.__doc__ or '').strip()} docs/kinds/{resource.__name__}.md has every field.",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": resource.__name__},
            "metadata": {**closed, "properties": metadata, "required": ["name"]},
            "spec": spec,
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }


def _one_of(description: str, kinds: Iterable[str], suffix: str) -> Object:
    refs = {kind: schema_ref(f"{kind}{suffix}") for kind in kinds}
    mapping = {kind: ref["$ref"] for kind, ref in refs.items()}
    return {
        "description": description,
        "oneOf": list(refs.values()),
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
