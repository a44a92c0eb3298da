"""What can be said of a run when it is over, in a form in which two runs can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import CONFIGURATION, GROUP, OPERATOR, RAN, REVISION, WORKLOAD
from pincompute.kube.resource import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    Object,
    Resource,
)
from pincompute.kube.watch import ADDED
from simulation.fields import read
from simulation.store import Store

Name = tuple[str, str, str]
"""Kind, namespace, and name without what is drawn."""

_PASSING = (LEASES, EVENTS, NODES)
_SHARED = (CLAIMS, NAMESPACES)
_GENERATED = {PODS.kind, REPLICA_SETS.kind}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
_DRAWN = re.compile(r"-\d{5}\b")


class Record(NamedTuple):
    """One step: how the world was left, and what happened to whom on the way."""

    state: tuple[tuple[Name, str], ...]
    made: Counter[Name]
    kept: Counter[Name]
    """What was there before and is the very same afterwards."""
    passing: frozenset[Name] = frozenset()
    """Left behind by what somebody took back at once: whether it was ever made depends on the moment."""
    former: frozenset[Name] = frozenset()
    """Left behind by what was wanted before."""


def identities(store: Store) -> dict[str, Name]:
    return {each["metadata"]["uid"]: _name(kind, each) for kind, each in store.everything() if kind not in _PASSING}


class Recorder:
    """Takes a record of each step; what a hasty one leaves behind is passing from then on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._passing: set[Name] = set()
        self.begin()

    def begin(self) -> None:
        self._before = identities(self._store)
        self._revision = self._store.revision

    def end(self, *, hasty: bool) -> Record:
        """What has become since the beginning."""
        after = identities(self._store)
        there = [(kind, each) for kind, each in self._store.everything() if kind not in _PASSING]
        kept = Counter(name for uid, name in after.items() if uid in self._before)
        if hasty:
            self._passing |= _passing(there) - set(self._before.values())
            kept = Counter({name: count for name, count in kept.items() if name[0] not in _GENERATED})
        uids = {uid: "/".join(name) for uid, name in after.items()}
        state = sorted((_name(kind, each), _spelled(kind, each, uids)) for kind, each in there)
        made = Counter[Name]() if hasty else self._made()
        return Record(tuple(state), made, kept, frozenset(self._passing), frozenset(_passing(there)))

    def _made(self) -> Counter[Name]:
        found: Counter[Name] = Counter()
        for kind, happened in self._store.history.items():
            new = [each.object for each in happened if each.revision > self._revision and each.type == ADDED]
            found.update(_name(kind, each) for each in new if kind not in _PASSING)
        return found


def _passing(there: list[tuple[Resource, Object]]) -> set[Name]:
    """Sets of copies without any, and records and files of revisions that are not the newest of their workload."""
    records = sorted((each for kind, each in there if kind == CONFIG_MAPS and _revision(each)), key=_revision)
    newest = {each["metadata"]["labels"][WORKLOAD]: each for each in records}
    former = [each for each in records if newest[each["metadata"]["labels"][WORKLOAD]] is not each]
    files = {_files(each) for each in former} - {_files(each) for each in newest.values()}
    empty = {_name(kind, each) for kind, each in there if kind == REPLICA_SETS and not each["spec"]["replicas"]}
    return empty | {_name(CONFIG_MAPS, each) for each in former} | files


def _files(value: Object) -> Name:
    """By which the revision of this record was configured."""
    metadata = value["metadata"]
    return CONFIG_MAPS.kind, metadata["namespace"], metadata["annotations"].get(CONFIGURATION, "")


def _revision(value: Object) -> int:
    return int(value["metadata"].get("annotations", {}).get(REVISION, "0"))


def loose(record: Record) -> Record:
    """Without what depends on whether all was done that was wanted on the way."""
    return record._replace(made=Counter(), kept=Counter(), passing=record.passing | record.former)


def differences(wanted: Record, found: Record) -> list[str]:
    """Everything in which a run that was disturbed ended otherwise, or did more harm on the way."""
    passing = wanted.passing | found.passing
    was, is_now = (Counter(each for each in record.state if each[0] not in passing) for record in (wanted, found))
    lost, new = was - is_now, is_now - was
    missing, surplus = _grouped(lost), _grouped(new)
    said: list[str] = []
    for name in sorted({*missing, *surplus}):
        for was, is_ in zip_longest(missing.get(name, []), surplus.get(name, [])):
            said.append(_told(" ".join(name), was, is_))
    if wanted.made:
        said += [
            f"made once too often: {' '.join(name)}"
            for name in (found.made - wanted.made).elements()
            if name not in passing
        ]
    said += [
        f"replaced, and should be kept: {' '.join(name)}"
        for name in (wanted.kept - found.kept).elements()
        if name not in passing
    ]
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
            # Whether we made a claim larger, or it was made so, comes to the same; and a label that the server adds.
            if each["manager"] == OPERATOR and not each.get("subresource") and resource not in _SHARED
            for path in read(each["fieldsV1"])
        ),
    }
    if resource.group != GROUP:
        said.get("status", {}).pop("observedGeneration", None) if isinstance(said.get("status"), dict) else None
    if resource == PODS:
        said["spec"] = {name: each for name, each in said["spec"].items() if name != "nodeName"}
        said.pop("status")
        said["phase"] = value["status"].get("phase")
        # What ran when an image was changed: whether it had begun by then depends on the moment.
        said["metadata"]["annotations"] = {
            name: "" if name == RAN else each for name, each in metadata.get("annotations", {}).items()
        }
    text = msgspec.json.encode(said, order="deterministic").decode()
    for uid, name in uids.items():
        text = text.replace(uid, name)
    return _DRAWN.sub("-*", _TIME.sub("TIME", text))
