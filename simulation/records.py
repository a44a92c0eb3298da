"""What can be said of a run when it is over, in a form in which two runs can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import GROUP, OPERATOR, REVISION
from pincompute.kube.resource import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, REPLICA_SETS, Object, Resource
from pincompute.kube.watch import ADDED
from simulation.fields import read
from simulation.store import Store

Name = tuple[str, str, str]
"""Kind, namespace, and name without what is drawn."""

_PASSING = (LEASES, EVENTS, NODES)
_GENERATED = (PODS, REPLICA_SETS)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
_DRAWN = re.compile(r"-\d{5}\b")


class Record(NamedTuple):
    """One step: how the world was left, and what happened to whom on the way."""

    state: tuple[tuple[Name, str], ...]
    made: Counter[Name]
    kept: Counter[Name]
    """What was there before and is the very same afterwards."""


def identities(store: Store) -> dict[str, Name]:
    return {each["metadata"]["uid"]: _name(kind, each) for kind, each in store.everything() if kind not in _PASSING}


def record(store: Store, before: dict[str, Name], revision: int, *, hasty: bool) -> Record:
    """What has become since a revision."""
    after = identities(store)
    made: Counter[Name] = Counter()
    for resource, happened in store.history.items():
        if resource not in _PASSING:
            made.update(_name(resource, each.object) for each in happened if each.revision > revision and each.type == ADDED)
    kept = Counter(name for uid, name in after.items() if uid in before)
    uids = {uid: "/".join(name) for uid, name in after.items()}
    there = [(kind, each) for kind, each in store.everything() if kind not in _PASSING and not (hasty and _passed(each))]
    state = sorted((_name(kind, each), _spelled(kind, each, uids)) for kind, each in there)
    if hasty:
        made, kept = Counter(), Counter({name: count for name, count in kept.items() if name[0] not in _GENERATED_KINDS})
    return Record(tuple(state), made, kept)


_GENERATED_KINDS = {each.kind for each in _GENERATED}


def differences(wanted: Record, found: Record) -> list[str]:
    """Everything in which a run that was disturbed ended otherwise, or did more harm on the way."""
    lost, new = Counter(wanted.state) - Counter(found.state), Counter(found.state) - Counter(wanted.state)
    missing, surplus = _grouped(lost), _grouped(new)
    said: list[str] = []
    for name in sorted({*missing, *surplus}):
        for was, is_ in zip_longest(missing.get(name, []), surplus.get(name, [])):
            said.append(_told(" ".join(name), was, is_))
    if wanted.made:
        said += [f"made once too often: {' '.join(name)}" for name in (found.made - wanted.made).elements()]
    said += [f"replaced, and should be kept: {' '.join(name)}" for name in (wanted.kept - found.kept).elements()]
    return said


def _grouped(states: Counter[tuple[Name, str]]) -> dict[Name, list[str]]:
    found: dict[Name, list[str]] = {}
    for name, text in states.elements():
        found.setdefault(name, []).append(text)
    return found


def _told(name: str, was: str | None, is_: str | None) -> str:
    if was is None or is_ is None:
        return f"{name} {'is missing' if is_ is None else 'should not be'}"
    before, after = (dict(_flat(msgspec.json.decode(each), "")) for each in (was, is_))
    other = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return f"{name}: " + "; ".join(f"{path} is {after.get(path)}, not {before.get(path)}" for path in other)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _flat(each, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _flat(each, f"{path}[{index}]")
    else:
        yield path, value


def _name(resource: Resource, value: Object) -> Name:
    metadata = value["metadata"]
    return resource.kind, metadata.get("namespace", ""), _DRAWN.sub("-*", metadata["name"])


def _spelled(resource: Resource, value: Object, uids: dict[str, str]) -> str:
    """Without what differs from run to run: identities, times, and where a pod was put."""
    metadata = value["metadata"]
    said: Object = {name: each for name, each in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    owners = [uids.get(each["uid"], "gone") for each in metadata.get("ownerReferences", ())]
    said["metadata"] = {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "owners": owners,
        "finalizers": metadata.get("finalizers", []),
        "ours": sorted(
            "/".join(path)
            for each in metadata.get("managedFields", ())
            if each["manager"] == OPERATOR and not each.get("subresource")
            for path in read(each["fieldsV1"])
        ),
    }
    if resource.group != GROUP:
        said.get("status", {}).pop("observedGeneration", None) if isinstance(said.get("status"), dict) else None
    if resource == PODS:
        said["spec"] = {name: each for name, each in said["spec"].items() if name != "nodeName"}
        said.pop("status")
        said["phase"] = value["status"].get("phase")
    text = msgspec.json.encode(said, order="deterministic").decode()
    for uid, name in uids.items():
        text = text.replace(uid, name)
    return _DRAWN.sub("-*", _TIME.sub("TIME", text))


def _passed(value: Object) -> bool:
    """The record of a revision that somebody took back again, or what was left of its making."""
    annotations: Any = value["metadata"].get("annotations", {})
    if value["kind"] == REPLICA_SETS.kind:
        return not value["spec"]["replicas"]
    return value["kind"] == CONFIG_MAPS.kind and REVISION in annotations
