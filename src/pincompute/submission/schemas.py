"""Types as JSON schema: every struct once, with the words that stand below its fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.manifests import shapes
from pincompute.api.names import API_VERSION
from pincompute.api.noun import Noun
from pincompute.api.wire import Metadata, fields_of
from pincompute.api.workload import Workload
from pincompute.objects.content import Object

PLACE = "#/components/schemas/"
_HERE = "pincompute.api."
_WORKLOAD, _DOCUMENT, _NOUN = Workload.__name__, "WorkloadDocument", "Document"


class Schemas(NamedTuple):
    """What was asked for, one by one, and all that this refers to."""

    asked: list[Object]
    shared: dict[str, Object]


def ref(name: str) -> Object:
    return {"$ref": f"{PLACE}{name}"}


def schemas(types: Iterable[Any]) -> Schemas:
    """The kinds are among what is shared: as the cluster has them, and as people write them."""
    types, ours = list(types), [*KINDS.values(), *shapes()]
    wanted = [*ours, *(dict[str, Any] if each is Workload else each for each in types)]
    found, shared = msgspec.json.schema_components(wanted, ref_template=f"{PLACE}{{name}}")
    for struct in _structs(*ours, *types):
        for name in (struct.__name__, f"{struct.__module__}.{struct.__qualname__}"):
            if name in shared and shared[name].get("title") == struct.__name__:
                _describe(shared[name], struct)
    for noun in KINDS.values():
        _name(shared[noun.__name__], noun)
        shared[f"{noun.__name__}{_NOUN}"] = _document(noun)
    shared[_WORKLOAD] = _one_of("A workload, as the cluster has it.", WORKLOADS, "")
    shared[_DOCUMENT] = _one_of("What is to run, as a person writes it.", WORKLOADS, _NOUN)
    shared[_NOUN] = _one_of("What can be planned, as a person writes it.", KINDS, _NOUN)
    asked = [
        ref(_WORKLOAD) if type_ is Workload else each for type_, each in zip(types, found[len(ours) :], strict=True)
    ]
    return Schemas([_placed(each) for each in asked], {_short(name): _placed(shared[name]) for name in sorted(shared)})


def _placed(schema: Any) -> Any:
    """What Kubernetes describes is named without a place."""
    if isinstance(schema, list):
        return [_placed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _placed(each) for name, each in schema.items()}
    if isinstance(found.get("$ref"), str):
        found["$ref"] = f"{PLACE}{_short(found['$ref'])}"
    return found


def _short(name: str) -> str:
    """Two of one name stand there with their modules, which begin alike."""
    return name.removeprefix(PLACE).removeprefix(_HERE)


def words_of(struct: type) -> dict[str, str]:
    """What is said below each field, those of its parents too."""
    found: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if each.__module__.startswith(_HERE) or each.__module__.startswith("pincompute.submission"):
            found |= dict(_said(each))
    return found


def _said(struct: type) -> Iterator[tuple[str, str]]:
    try:
        source = inspect.getsource(struct)
    except OSError:
        # Where it is installed without its source, it works without words.
        return
    (tree,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Constant):
            yield field.target.id, " ".join(str(text.value).split())


def _describe(schema: Object, struct: type) -> None:
    words = words_of(struct)
    for field in fields_of(struct):
        if field.name in words:
            schema["properties"][field.encode_name].setdefault("description", words[field.name])


def _structs(*types: Any) -> set[type]:
    """All that types are made of."""
    found: set[type] = set()
    ways: list[Any] = list(types)
    while ways:
        each = ways.pop()
        if isinstance(each, type) and issubclass(each, msgspec.Struct) and each not in found:
            found.add(each)
            ways += [field.type for field in fields_of(each)]
        ways += [inner for inner in getattr(each, "__args__", ()) if inner is not Ellipsis]
    return found


def _name(schema: Object, noun: type[Noun]) -> None:
    """Which kind it is says which fields it has."""
    schema["properties"] |= {"kind": {"const": noun.__name__}, "apiVersion": {"const": API_VERSION}}
    schema["required"] = sorted({*schema["required"], "kind", "apiVersion"})


def _document(noun: type[Noun]) -> Object:
    """Its metadata is what a person may write of it."""
    labels = {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
    metadata = {
        "name": {"type": "string", "pattern": noun.NAME_PATTERN, "maxLength": noun.MAX_NAME},
        "project": {"type": "string", "description": "Where the address names none."},
        "namespace": {"type": "string", "description": "The same, as Kubernetes calls it."},
        "labels": labels,
        "annotations": labels,
    }
    assert metadata.keys() - {"project"} <= {each.encode_name for each in fields_of(Metadata)}
    closed = {"type": "object", "additionalProperties": False}
    spec = msgspec.json.schema_components([noun.spec_type()], ref_template=f"{PLACE}{{name}}")[0][0]
    return {
        **closed,
        "title": noun.__name__,
        "description": f"{(noun.__doc__ or '').strip()} docs/kinds/{noun.__name__}.md has every field.",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": noun.__name__},
            "metadata": {**closed, "properties": metadata, "required": ["name"]},
            "spec": spec,
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }


def _one_of(words: str, kinds: Iterable[str], suffix: str) -> Object:
    each = {kind: ref(f"{kind}{suffix}") for kind in kinds}
    mapping = {kind: one["$ref"] for kind, one in each.items()}
    return {
        "description": words,
        "oneOf": list(each.values()),
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
