"""Any valid document of any kind, drawn from the kind's own types, and the pods that could come of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from pincompute.api.admission import admit
from pincompute.api.documents import Document
from pincompute.api.kinds import KINDS
from pincompute.api.names import API_VERSION
from pincompute.api.noun import Noun
from pincompute.api.wire import LOOKS, Open
from pincompute.base.problem import Refused
from pincompute.objects.content import Object
from signing import trusted

Drawn = st.SearchStrategy[Any]
Path = tuple[str, ...]
"""Names of fields; `*` is an entry of a list or of a mapping, `*key` the name of one."""

_words = st.from_regex(r"[a-z][a-z0-9]{0,7}", fullmatch=True)
_variables = st.from_regex(r"[A-Z][A-Z0-9_]{0,7}", fullmatch=True).filter(lambda each: not each.startswith("PIN_"))
_variables = st.sampled_from(["PORT", "HOME"]) | _variables
_volumes = st.sampled_from(["data", "scratch", "configuration"])
_images = st.sampled_from(["hello:dev", "team/hello:1.0", "registry.example.com/a@sha256:" + "0" * 64])
_AMOUNTS = ("1", "500m", "2", "64Mi", "1.5Gi", 3)
_quantities = st.sampled_from(["0", "500m", "2", "64Mi"])
_indexes = st.sampled_from(["", "0", "0-2", "1,3-5"])
_counted = st.sampled_from(["pods", "requests.cpu", "requests.memory"])
_SHARES = (1, 3, "25%", 0, "100%")

_moments = st.sampled_from(["2026-01-31T11:00:00Z", "2026-01-31T11:59:55Z", "2026-01-31T12:00:00Z"])

HINTS: dict[Path, Drawn] = {
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
    ("until",): st.sampled_from(["2026-12-31", "2027-01-01"]),
    ("configurationPath",): st.sampled_from(["/etc/hello", "/srv/a"]),
    ("environment", "*key"): _variables,
    ("configuration", "*key"): st.from_regex(r"[a-z]{1,4}\.(toml|yaml)", fullmatch=True),
    ("loadBalancer", "host"): st.sampled_from(["shop.example.com", "a.b"]),
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
    ("terminated", "finishedAt"): _moments,
    ("phase",): st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    ("conditions", "*", "type"): st.sampled_from(["PodScheduled", "Ready", "ContainersReady", "Complete", "Failed"]),
    ("conditions", "*", "status"): st.sampled_from(["True", "False", "Unknown"]),
    ("conditions", "*", "reason"): st.sampled_from(["", "Unschedulable", "SchedulingGated", "BackoffLimitExceeded"]),
    ("hard", "*key"): _counted,
    ("used", "*key"): _counted,
    ("hard", "*"): _quantities,
    ("used", "*"): _quantities,
    ("capacity", "*"): _quantities,
    ("completedIndexes",): _indexes,
    ("failedIndexes",): _indexes,
    ("tasks",): st.integers(1, 5) | st.just(1000),
    ("schedule",): st.sampled_from(["30 3 * * mon-fri", "*/10 * * * *", "0 0 29 2 *", "0 2 1 * 0", "@daily"]),
    ("timeZone",): st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    ("people",): st.lists(_words, min_size=1, max_size=3, unique=True),
    ("landing", "people"): st.just(trusted("ann", "ben")) | st.just(trusted("ann", "ben", "carla")),
    ("landing", "builders"): st.just(trusted("ci")) | st.just(trusted("ci", "other")),
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
"""What the type of a field does not say: a grammar of its own, by the end of its path."""

DECIDED = {
    "priorityClassName", "priority", "preemptionPolicy", "serviceAccountName", "serviceAccount", "restartPolicy",
    "ephemeralContainers",
}  # fmt: skip
"""Of a pod template: what the platform decides, and refuses to be told."""


USUAL = {"image", "quota", "on-demand", "people", "tasks", "containerStatuses", "imageID"}
"""What almost every document says, though it need not."""

LIKELY = {
    "template", "spec", "containers", "env", "volumes", "volumeMounts", "configuration", "environment", "ports",
    "serves", "type", "containerStatuses", "state", "lastState", "waiting", "terminated", "conditions",
}  # fmt: skip
"""What is said in every second one: where most can go wrong."""


@st.composite
def documents(draw: st.DrawFn, kind: str, forced: Path = ()) -> Object:
    """A document whose every field is of the right type; `forced` names one that is there for sure, below `spec`."""
    name = draw(names(KINDS[kind]))
    spec = draw(_spec(kind, forced))
    containers = spec.get("template", {}).get("spec", {}).get("containers", [])
    if containers and draw(st.booleans()):
        containers[0]["name"] = name
    if containers and draw(st.booleans()) and forced[:1] != ("image",):
        spec.pop("image", None)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


@lru_cache(maxsize=1024)
def _spec(kind: str, forced: Path) -> Drawn:
    return of(inspect.type_info(KINDS[kind].spec_type()), (), forced)


def nouns(kind: str) -> Drawn:
    """The same as admitted, given to the cluster and written there."""
    admitted = documents(kind).map(admitted_or_none).filter(lambda each: each is not None)
    return st.builds(written, admitted, st.integers(1, 12))


@lru_cache(maxsize=64)
def names(noun: type[Noun]) -> Drawn:
    """Short ones, and one that is as long as it may be."""
    short = st.from_regex(noun.NAME_PATTERN, fullmatch=True).filter(lambda each: len(each) <= noun.MAX_NAME)
    return short | short.map(lambda each: longest(each, noun.MAX_NAME))


def longest(name: str, most: int) -> str:
    """Repeated at its beginning, so that what the end must look like stays."""
    return (name[0] * (most - len(name)) + name) if name[0] != "-" else name


def admitted_or_none(document: Object) -> Noun | None:
    """What contradicts itself is admitted without the fields that do, where these need not be there."""
    required = {
        each.encode_name for each in msgspec.structs.fields(KINDS[document["kind"]].spec_type()) if each.required
    }
    for _ in range(3):
        try:
            return admit(Document(document, "drawn.yaml", {}), "me")
        except Refused as refused:
            wrong = {problem.where.field.split(".")[1] for problem in refused.problems if "." in problem.where.field}
            spec = {name: each for name, each in document["spec"].items() if name in required or name not in wrong}
            document = {**document, "spec": spec}
    return None


def written(noun: Any, generation: int = 1) -> Any:
    metadata = msgspec.structs.replace(noun.metadata, uid="uid-of-the-owner", generation=generation)
    return msgspec.structs.replace(noun, metadata=metadata)


def field_at(kind: str, path: Path) -> Drawn:
    """Any value that the field at a path may have."""
    info: Any = inspect.type_info(KINDS[kind].spec_type())
    for step in path:
        info = inner(info, step)
    return of(info, path)


def fields(info: Any, path: Path = ()) -> list[Path]:
    """The paths of all leaves; Kubernetes' own count as one."""
    info = plain(info)
    if isinstance(info, inspect.StructType) and not issubclass(info.cls, Open):
        return [leaf for each in info.fields for leaf in fields(each.type, (*path, each.encode_name))]
    item = _item(info)
    if item is not None and isinstance(plain(item), inspect.StructType) and not issubclass(plain(item).cls, Open):
        return fields(item, (*path, "*"))
    return [path]


def inner(info: Any, step: str) -> Any:
    info = plain(info)
    if isinstance(info, inspect.StructType):
        return next(each.type for each in info.fields if each.encode_name == step)
    return _item(info)


def plain(info: Any) -> Any:
    """Without the words around it, and without the choice to leave it out."""
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            shape = (info.extra or {}).get("shape")
            info = inspect.type_info(shape) if shape is not None else info.type
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


def of(info: Any, path: Path = (), forced: Path = ()) -> Drawn:
    """Any value of a type."""
    hint = _hint(path)
    if hint is not None:
        return hint
    looks = _looks(info)
    if looks is not None:
        return looks
    info = plain(info)
    if isinstance(info, inspect.StructType):
        return _struct(info, path, forced)
    if isinstance(info, inspect.ListType):
        return _list(info, path, forced)
    if isinstance(info, inspect.DictType):
        least = max(info.min_length or 0, bool(forced))
        keys = of(info.key_type, (*path, "*key"))
        return st.dictionaries(keys, of(info.value_type, (*path, "*"), forced[1:]), min_size=least, max_size=least + 2)
    return _leaf(info)


def _leaf(info: Any) -> Drawn:
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


_OTHERS: dict[type, Drawn] = {
    inspect.BoolType: st.booleans(),
    inspect.DateTimeType: _moments,
    inspect.AnyType: st.booleans() | st.integers(-5, 5) | _words,
}


def _hint(path: Path) -> Drawn | None:
    return next((HINTS[path[-size:]] for size in range(len(path), 0, -1) if path[-size:] in HINTS), None)


def _looks(info: Any) -> Drawn | None:
    """Of what may be a number or a text, and looks as a pattern says."""
    schema: Mapping[str, Any] = (info.extra_json_schema or {}) if isinstance(info, inspect.Metadata) else {}
    words = LOOKS.get(schema.get("pattern", ""), "")
    return st.sampled_from(_AMOUNTS if words.startswith("an amount") else _SHARES) if words else None


@lru_cache(maxsize=256)
def _text(pattern: str | None, least: int, most: int) -> Drawn:
    if pattern:
        return st.from_regex(pattern, fullmatch=True).filter(lambda each: least <= len(each) <= most)
    return st.text(min_size=least, max_size=min(most, least + 12))


def _struct(info: inspect.StructType, path: Path, forced: Path) -> Drawn:
    drawn = {
        each.encode_name: of(each.type, (*path, each.encode_name), forced[1:])
        if _on_way(each, forced)
        else _field(info.cls, each.encode_name, path)
        for each in info.fields
        if not (issubclass(info.cls, Open) and each.encode_name in DECIDED)
    }
    there = {
        each.encode_name for each in info.fields if each.required or each.encode_name in USUAL or _on_way(each, forced)
    }
    if issubclass(info.cls, Open):
        drawn["xTomorrow"] = st.integers() | _words
    return _some({name: drawn[name] for name in drawn if name in there}, drawn)


@lru_cache(maxsize=4096)
def _field(struct: type, name: str, path: Path) -> Drawn:
    """Made once: all documents share what they do not force."""
    found: Any = inspect.type_info(struct)
    return of(inner(found, name), (*path, name))


def _on_way(field: Any, forced: Path) -> bool:
    return forced[:1] == (field.encode_name,)


def _some(required: dict[str, Drawn], drawn: dict[str, Drawn]) -> Drawn:
    """Few of many: a document that says everything at once contradicts itself."""
    optional = sorted(drawn.keys() - required.keys())
    few = st.sets(st.sampled_from(optional), max_size=6) if optional else st.just(set())
    likely = st.sets(st.sampled_from([name for name in optional if name in LIKELY])) if LIKELY & {*optional} else None
    return _chosen(required, drawn, few if likely is None else st.builds(set.union, few, likely))


@st.composite
def _chosen(draw: st.DrawFn, required: dict[str, Drawn], drawn: dict[str, Drawn], names: Drawn) -> Object:
    chosen = draw(names)
    return {name: draw(drawn[name]) for name in drawn if name in required or name in chosen}


def _list(info: inspect.ListType, path: Path, forced: Path) -> Drawn:
    least = max(info.min_length or 0, bool(forced))
    most = max(least, min(least + 2, 1000 if info.max_length is None else info.max_length))
    entries = of(info.item_type, (*path, "*"), forced[1:])
    item = plain(info.item_type)
    named = isinstance(item, inspect.StructType) and "name" in {each.name for each in item.fields}
    return st.lists(entries, min_size=least, max_size=most, unique_by=_name if named else None)


def _name(entry: Object) -> Any:
    return entry.get("name")
