"""Hypothesis strategies for documents of every kind and for pods, derived from the types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import Document
from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION
from pincompute.api.structs import PATTERN_DESCRIPTIONS, OpenStruct
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from signed_builds import trusted_keys

Strategy = st.SearchStrategy[Any]
FieldPath = tuple[str, ...]
"""Field names; `*` stands for an entry of a list or mapping, `*key` for the key of an entry."""

_words = st.from_regex(r"[a-z][a-z0-9]{0,7}", fullmatch=True)
_variables = st.from_regex(r"[A-Z][A-Z0-9_]{0,7}", fullmatch=True).filter(lambda each: not each.startswith("PIN_"))
_variables = st.sampled_from(["PORT", "HOME"]) | _variables
_volumes = st.sampled_from(["data", "scratch", "configuration"])
_images = st.sampled_from(["hello:dev", "team/hello:1.0", "registry.example.com/a@sha256:" + "0" * 64])
_QUANTITIES = ("1", "500m", "2", "64Mi", "1.5Gi", 3)
_quantities = st.sampled_from(["0", "500m", "2", "64Mi"])
_indexes = st.sampled_from(["", "0", "0-2", "1,3-5"])
_quota_keys = st.sampled_from(["pods", "requests.cpu", "requests.memory"])
_PATTERNED_VALUES = {
    "a quantity": _QUANTITIES,
    "a number or percentage": (1, 3, "25%", 0, "100%"),
    "a port": (9102, "9102", "9103/a", "9102/internal/metrics"),
}
"""Values of int-or-string fields, by the start of the description of their pattern."""

_timestamps = st.sampled_from(["2026-01-31T11:00:00Z", "2026-01-31T11:59:55Z", "2026-01-31T12:00:00Z"])

HINTS: dict[FieldPath, Strategy] = {
    ("image",): _images,
    ("name",): _words,
    ("hold", "runtime"): st.integers(1, 6),
    ("claims", "*key"): _words,
    ("claims", "*", "path"): st.sampled_from(["/a", "/b/c"]),
    ("items",): st.lists(_words, min_size=1, max_size=3),
    ("attempts", "*", "tasks"): st.sampled_from(["failed", "1", "1-2"]),
    ("allowed", "*"): st.sampled_from(["info", "debug", 3]),
    ("minimum",): st.integers(0, 5),
    ("maximum",): st.integers(1, 10),
    ("expires",): st.sampled_from(["1h", "30d", "2025-12-31", "2026-02-01T00:00:00Z", "2026-01-31", "2026-12-31"]),
    ("until",): st.sampled_from(["2026-12-31", "2027-01-01"]),
    ("configurationPath",): st.sampled_from(["/etc/hello", "/srv/a"]),
    ("environment", "*key"): _variables,
    ("configuration", "*key"): st.from_regex(r"[a-z]{1,4}\.(toml|yaml)", fullmatch=True),
    ("loadBalancer", "host"): st.sampled_from(["shop.example.com", "a.b"]),
    ("loadBalancer", "annotations", "*key"): st.sampled_from(["example.com/retries", "example.com/limit", "a"]),
    ("ingress", "annotations"): st.lists(st.sampled_from(["example.com/retries", "a"]), unique=True),
    ("ingress", "issuers", "*key"): _words,
    ("loadBalancer", "tls"): st.sampled_from(["shop-tls", "a"]),
    ("env", "*", "name"): _variables,
    ("requests", "*key"): st.sampled_from(["cpu", "memory", "ephemeral-storage"]),
    ("limits", "*key"): st.sampled_from(["cpu", "memory", "ephemeral-storage"]),
    ("mountPath",): st.just("/etc/configuration") | st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
    ("parts",): st.lists(st.sampled_from(["identity-1", "logs-2", "traffic-3"]), min_size=1, unique=True),
    ("waiting", "reason"): st.sampled_from(
        ["CrashLoopBackOff", "ImagePullBackOff", "CreateContainerConfigError", "Other"]
    ),
    ("containerStatuses", "*", "name"): st.just("a"),
    ("containerStatuses", "*", "imageID"): st.sampled_from(["", "a@sha256:1", "a@sha256:2"]),
    ("terminated", "reason"): st.sampled_from(["Error", "OOMKilled", "Completed", "DeadlineExceeded"]),
    ("terminated", "message"): st.sampled_from(["", "one\ntwo", "x" * 5000]),
    ("terminated", "finishedAt"): _timestamps,
    ("phase",): st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    ("conditions", "*", "type"): st.sampled_from(["PodScheduled", "Ready", "ContainersReady", "Complete", "Failed"]),
    ("conditions", "*", "status"): st.sampled_from(["True", "False", "Unknown"]),
    ("conditions", "*", "reason"): st.sampled_from(["", "Unschedulable", "SchedulingGated", "BackoffLimitExceeded"]),
    ("hard", "*key"): _quota_keys,
    ("used", "*key"): _quota_keys,
    ("hard", "*"): _quantities,
    ("used", "*"): _quantities,
    ("capacity", "*"): _quantities,
    ("completedIndexes",): _indexes,
    ("failedIndexes",): _indexes,
    ("tasks",): st.integers(1, 5) | st.just(1000),
    ("schedule",): st.sampled_from(["30 3 * * mon-fri", "*/10 * * * *", "0 0 29 2 *", "0 2 1 * 0", "@daily"]),
    ("timeZone",): st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    ("hosts",): st.lists(st.sampled_from(["shop.example.com", "*.example.com"]), min_size=1, unique=True),
    ("people",): st.lists(_words, min_size=1, max_size=3, unique=True),
    ("landing", "repository"): st.just("/srv/git/shop.git") | st.just("https://git.example.com/ads/shop.git"),
    ("landing", "since"): st.just("") | st.just("a" * 40),
    ("landing", "people"): st.just(trusted_keys("ann", "ben")) | st.just(trusted_keys("ann", "ben", "carla")),
    ("landing", "builders"): st.just(trusted_keys("ci")) | st.just(trusted_keys("ci", "other")),
    ("landing", "reviewers"): st.integers(0, 2),
    ("policies", "*", "rule"): st.sampled_from(["requests.cpu <= 8", "size(who.groups) > 0", "has(build.version)"]),
    ("policies", "*", "kinds"): st.lists(st.sampled_from(["PinterestService", "PinterestJobSet"]), max_size=2),
    ("volumes", "*", "name"): _volumes,
    ("volumeMounts", "*", "name"): _volumes,
    ("mounts", "*", "name"): _volumes,
    ("waves",): st.sampled_from([[5, 25, 100], [100], [1, 100]]),
    ("labels", "*key"): _words,
    ("nodes", "*key"): st.sampled_from(["disk", "example.com/zone", ""]),
    ("selector", "*key"): st.just("mesh"),
    ("selector", "*"): st.sampled_from(["new", "old"]),
    ("parameters", "*key"): st.sampled_from(["level", "lines"]),
    ("labels", "*"): _words,
}
"""Strategies for fields with a grammar that their type does not describe, by the suffix of the path."""

PLATFORM_FIELDS = {
    "priorityClassName", "priority", "preemptionPolicy", "serviceAccountName", "serviceAccount", "restartPolicy",
    "ephemeralContainers",
}  # fmt: skip
"""Fields of a pod template that the platform sets and rejects in documents."""


USUAL_FIELDS = {"image", "port", "quota", "on-demand", "people", "tasks", "containerStatuses", "imageID"}
"""Optional fields that every generated document has."""

LIKELY_FIELDS = {
    "template", "spec", "containers", "env", "volumes", "volumeMounts", "configuration", "environment", "ports",
    "serves", "type", "containerStatuses", "state", "lastState", "waiting", "terminated", "conditions",
}  # fmt: skip
"""Optional fields generated in every second document: those with the most complex handling."""


type_info = cache(inspect.type_info)


@st.composite
def documents(draw: st.DrawFn, kind: str, forced: FieldPath = ()) -> Object:
    """A document with fields of the right types. It always has the field `forced`, a path below `spec`."""
    name = draw(resource_names(KINDS[kind]))
    spec = draw(_spec(kind, forced))
    containers = spec.get("template", {}).get("spec", {}).get("containers", [])
    if containers and draw(st.booleans()):
        containers[0]["name"] = name
    if containers and draw(st.booleans()) and forced[:1] != ("image",):
        spec.pop("image", None)
    if not spec.get("gpus") and forced[:1] != ("gpuType",):
        # Refused without GPUs: few other documents would be left.
        spec.pop("gpuType", None)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


@lru_cache(maxsize=1024)
def _spec(kind: str, forced: FieldPath) -> Strategy:
    return values_of(type_info(KINDS[kind].spec_type()), (), forced)


def stored_resources(kind: str) -> Strategy:
    """Resources as stored in a cluster."""
    parsed = documents(kind).map(parsed_or_none).filter(lambda each: each is not None)
    return st.builds(as_stored, parsed, st.integers(1, 12))


@lru_cache(maxsize=64)
def resource_names(kind: type[CustomResource]) -> Strategy:
    """Short names, and names of the maximum length."""
    short = st.from_regex(kind.NAME_PATTERN, fullmatch=True).filter(lambda each: len(each) <= kind.MAX_NAME_LENGTH)
    return short | short.map(lambda each: padded_name(each, kind.MAX_NAME_LENGTH))


def padded_name(name: str, max_length: int) -> str:
    """The name extended at its start, because some patterns restrict its end."""
    return (name[0] * (max_length - len(name)) + name) if name[0] != "-" else name


def parsed_or_none(document: Object) -> CustomResource | None:
    """The parsed resource. Optional fields that contradict each other are left out; None if that does not help."""
    required = {
        each.encode_name for each in msgspec.structs.fields(KINDS[document["kind"]].spec_type()) if each.required
    }
    for _ in range(3):
        try:
            return parse_resource(Document(document, "drawn.yaml", {}), "me")
        except Refused as refused:
            wrong = {problem.where.field.split(".")[1] for problem in refused.problems if "." in problem.where.field}
            spec = {name: each for name, each in document["spec"].items() if name in required or name not in wrong}
            document = {**document, "spec": spec}
    return None


def as_stored(resource: Any, generation: int = 1) -> Any:
    """The resource with a uid and generation, as the API server would set them."""
    metadata = msgspec.structs.replace(resource.metadata, uid="uid-of-the-owner", generation=generation)
    return msgspec.structs.replace(resource, metadata=metadata)


def field_values(kind: str, path: FieldPath) -> Strategy:
    """Values of the field at a path."""
    info: Any = type_info(KINDS[kind].spec_type())
    for step in path:
        info = inner_type(info, step)
    return values_of(info, path)


def leaf_paths(info: Any, path: FieldPath = ()) -> list[FieldPath]:
    """Paths of all fields. An embedded Kubernetes type counts as one field."""
    info = unwrapped_type(info)
    if isinstance(info, inspect.StructType) and not issubclass(info.cls, OpenStruct):
        return [leaf for each in info.fields for leaf in leaf_paths(each.type, (*path, each.encode_name))]
    item = _item(info)
    if (
        item is not None
        and isinstance(unwrapped_type(item), inspect.StructType)
        and not issubclass(unwrapped_type(item).cls, OpenStruct)
    ):
        return leaf_paths(item, (*path, "*"))
    return [path]


def inner_type(info: Any, step: str) -> Any:
    info = unwrapped_type(info)
    if isinstance(info, inspect.StructType):
        return next(each.type for each in info.fields if each.encode_name == step)
    return _item(info)


def unwrapped_type(info: Any) -> Any:
    """Type without metadata and without None."""
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            shape = (info.extra or {}).get("shape")
            info = type_info(shape) if shape is not None else info.type
            continue
        options = [each for each in info.types if not isinstance(each, inspect.NoneType)]
        if len(options) > 1:
            return info
        info = options[0]
    return info


def _item(info: Any) -> Any:
    if isinstance(info, inspect.ListType):
        return info.item_type
    return info.value_type if isinstance(info, inspect.DictType) else None


def values_of(info: Any, path: FieldPath = (), forced: FieldPath = ()) -> Strategy:
    """Values of a type."""
    hint = _hint(path)
    if hint is not None:
        return hint
    patterned = _patterned(info)
    if patterned is not None:
        return patterned
    info = unwrapped_type(info)
    if isinstance(info, inspect.StructType):
        return _struct(info, path, forced)
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return _list(info, path, forced)
    if isinstance(info, inspect.DictType):
        least = max(info.min_length or 0, bool(forced))
        keys = values_of(info.key_type, (*path, "*key"))
        return st.dictionaries(
            keys, values_of(info.value_type, (*path, "*"), forced[1:]), min_size=least, max_size=least + 2
        )
    return _leaf(info)


def _leaf(info: Any) -> Strategy:
    match info:
        case inspect.StrType():
            return _text(info.pattern, info.min_length or 0, info.max_length or 1000)
        case inspect.IntType():
            low, high = info.ge or 0, 2**31 - 1 if info.le is None else info.le
            return st.integers(low, min(high, low + 5)) | st.integers(low, high)
        case inspect.EnumType():
            return st.sampled_from([each.value for each in info.cls])
        case inspect.LiteralType():
            return st.sampled_from(list(info.values))
    return _OTHERS[type(info)]


_OTHERS: dict[type, Strategy] = {
    inspect.BoolType: st.booleans(),
    inspect.DateTimeType: _timestamps,
    inspect.AnyType: st.booleans() | st.integers(-5, 5) | _words,
}


def _hint(path: FieldPath) -> Strategy | None:
    return next((HINTS[path[-size:]] for size in range(len(path), 0, -1) if path[-size:] in HINTS), None)


def _patterned(info: Any) -> Strategy | None:
    """Values of an int-or-string field with a pattern; None for other types."""
    schema: Mapping[str, Any] = (info.extra_json_schema or {}) if isinstance(info, inspect.Metadata) else {}
    words = PATTERN_DESCRIPTIONS.get(schema.get("pattern", ""), "")
    values = (each for start, each in _PATTERNED_VALUES.items() if words.startswith(start))
    return st.sampled_from(next(values)) if words else None


@lru_cache(maxsize=256)
def _text(pattern: str | None, least: int, most: int) -> Strategy:
    if pattern:
        return st.from_regex(pattern, fullmatch=True).filter(lambda each: least <= len(each) <= most)
    return st.text(min_size=least, max_size=min(most, least + 12))


def _struct(info: inspect.StructType, path: FieldPath, forced: FieldPath) -> Strategy:
    drawn = {
        each.encode_name: values_of(each.type, (*path, each.encode_name), forced[1:])
        if _leads_to(each, forced)
        else _field(info.cls, each.encode_name, path)
        for each in info.fields
        if not (issubclass(info.cls, OpenStruct) and each.encode_name in PLATFORM_FIELDS)
    }
    there = {
        each.encode_name
        for each in info.fields
        if each.required or each.encode_name in USUAL_FIELDS or _leads_to(each, forced)
    }
    if issubclass(info.cls, OpenStruct):
        drawn["xTomorrow"] = st.integers() | _words
    return _with_optional({name: drawn[name] for name in drawn if name in there}, drawn)


@lru_cache(maxsize=4096)
def _field(struct: type, name: str, path: FieldPath) -> Strategy:
    """Cached, because all documents share the strategies of fields that are not forced."""
    found: Any = type_info(struct)
    return values_of(inner_type(found, name), (*path, name))


def _leads_to(field: Any, forced: FieldPath) -> bool:
    return forced[:1] == (field.encode_name,)


def _with_optional(required: dict[str, Strategy], drawn: dict[str, Strategy]) -> Strategy:
    """Some of the optional fields: a document with all of them would contradict itself."""
    optional = sorted(drawn.keys() - required.keys())
    few = st.sets(st.sampled_from(optional), max_size=6) if optional else st.just(set())
    likely = (
        st.sets(st.sampled_from([name for name in optional if name in LIKELY_FIELDS]))
        if LIKELY_FIELDS & {*optional}
        else None
    )
    return _with_chosen(required, drawn, few if likely is None else st.builds(set.union, few, likely))


@st.composite
def _with_chosen(draw: st.DrawFn, required: dict[str, Strategy], drawn: dict[str, Strategy], names: Strategy) -> Object:
    chosen = draw(names)
    return {name: draw(drawn[name]) for name in drawn if name in required or name in chosen}


def _list(info: inspect.ListType | inspect.VarTupleType, path: FieldPath, forced: FieldPath) -> Strategy:
    least = max(info.min_length or 0, bool(forced))
    most = max(least, min(least + 2, 1000 if info.max_length is None else info.max_length))
    entries = values_of(info.item_type, (*path, "*"), forced[1:])
    item = unwrapped_type(info.item_type)
    named = isinstance(item, inspect.StructType) and "name" in {each.name for each in item.fields}
    return st.lists(entries, min_size=least, max_size=most, unique_by=_name if named else None)


def _name(entry: Object) -> Any:
    return entry.get("name")
