"""Records the state of a simulated cluster after a step, in a form in which two runs can be compared.

Everything that legitimately differs between two runs is removed: uids are replaced by names, generated name suffixes
and times by placeholders, and the node of a pod is dropped. What remains must be equal, field ownership included.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import (
    CONFIGURATION_ANNOTATION,
    CONTENT_ANNOTATION,
    GROUP,
    IN_PLACE_UPDATE_ANNOTATION,
    OPERATOR,
    REVISION_ANNOTATION,
    WANTED_HASH_ANNOTATION,
    WORKLOAD_LABEL,
)
from pincompute.kube.resource import (
    CONFIG_MAPS,
    CRON_JOBS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    Object,
    Resource,
)
from pincompute.kube.watch import ADDED
from simulation.field_paths import parse_fields_v1
from simulation.object_store import ObjectStore

ObjectName = tuple[str, str, str]
"""Kind, namespace, and name without generated suffixes."""

_NOT_COMPARED = (LEASES, EVENTS, NODES)
_NUMBERED = (CONFIG_MAPS, CRON_JOBS)
"""Objects that have the number of their revision, and with it another hash of their wanted content."""
_SHARED_OWNERSHIP = (PERSISTENT_VOLUME_CLAIMS, NAMESPACES)
_GENERATED_KINDS = {PODS.kind, REPLICA_SETS.kind}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
_GENERATED_SUFFIX = re.compile(r"-\d{5}\b")


class StepRecord(NamedTuple):
    """The state after one step, and which objects the step created and kept."""

    state: tuple[tuple[ObjectName, str], ...]
    created: Counter[ObjectName]
    survivors: Counter[ObjectName]
    """Objects that existed before the step and still have the same uid."""
    transient: frozenset[ObjectName] = frozenset()
    """Objects left by an edit that was reverted at once. Whether they were ever created depends on timing."""
    superseded: frozenset[ObjectName] = frozenset()
    """Objects left by earlier revisions."""


def object_identities(store: ObjectStore) -> dict[str, ObjectName]:
    """Names by uid."""
    return {
        each["metadata"]["uid"]: _object_name(kind, each)
        for kind, each in store.everything()
        if kind not in _NOT_COMPARED
    }


class StateRecorder:
    """Records one step after the other. What a transient step leaves behind is not compared from then on."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._transient: set[ObjectName] = set()
        self.begin()

    def begin(self) -> None:
        self._before = object_identities(self._store)
        self._revision = self._store.revision

    def end(self, *, is_transient: bool) -> StepRecord:
        """The record of the step since `begin`."""
        after = object_identities(self._store)
        existing = [(kind, each) for kind, each in self._store.everything() if kind not in _NOT_COMPARED]
        survivors = Counter(name for uid, name in after.items() if uid in self._before)
        if is_transient:
            self._transient |= _superseded_names(existing) - set(self._before.values())
            survivors = Counter({name: count for name, count in survivors.items() if name[0] not in _GENERATED_KINDS})
        uids = {uid: "/".join(name) for uid, name in after.items()}
        state = sorted((_object_name(kind, each), _normalized(kind, each, uids)) for kind, each in existing)
        created = Counter[ObjectName]() if is_transient else self._created_names()
        return StepRecord(
            tuple(state), created, survivors, frozenset(self._transient), frozenset(_superseded_names(existing))
        )

    def _created_names(self) -> Counter[ObjectName]:
        found: Counter[ObjectName] = Counter()
        for kind, events in self._store.history.items():
            new = [each.object for each in events if each.revision > self._revision and each.type == ADDED]
            found.update(_object_name(kind, each) for each in new if kind not in _NOT_COMPARED)
        return found


def _superseded_names(existing: list[tuple[Resource, Object]]) -> set[ObjectName]:
    """Empty ReplicaSets, and the records and configuration files of all revisions but the newest of each workload."""
    records = sorted((each for kind, each in existing if kind == CONFIG_MAPS and _revision(each)), key=_revision)
    newest = {each["metadata"]["labels"][WORKLOAD_LABEL]: each for each in records}
    former = [each for each in records if newest[each["metadata"]["labels"][WORKLOAD_LABEL]] is not each]
    files = {_configuration_name(each) for each in former} - {_configuration_name(each) for each in newest.values()}
    empty = {
        _object_name(kind, each) for kind, each in existing if kind == REPLICA_SETS and not each["spec"]["replicas"]
    }
    return empty | {_object_name(CONFIG_MAPS, each) for each in former} | files


def _configuration_name(value: Object) -> ObjectName:
    """The ConfigMap with the configuration of the revision that this record is of."""
    metadata = value["metadata"]
    return CONFIG_MAPS.kind, metadata["namespace"], metadata["annotations"].get(CONFIGURATION_ANNOTATION, "")


def _revision(value: Object) -> int:
    return int(value["metadata"].get("annotations", {}).get(REVISION_ANNOTATION, "0"))


def ignore_intermediate(record: StepRecord) -> StepRecord:
    """The record without objects of intermediate revisions, for runs that may skip a revision."""
    return record._replace(created=Counter(), survivors=Counter(), transient=record.transient | record.superseded)


def record_differences(wanted: StepRecord, found: StepRecord) -> list[str]:
    """Differences in the final state, objects created more often than wanted, and objects that were replaced."""
    passing = wanted.transient | found.transient
    was, is_now = (Counter(each for each in record.state if each[0] not in passing) for record in (wanted, found))
    lost, new = was - is_now, is_now - was
    missing, surplus = _by_name(lost), _by_name(new)
    violations: list[str] = []
    for name in sorted({*missing, *surplus}):
        for was, is_ in zip_longest(missing.get(name, []), surplus.get(name, [])):
            violations.append(_describe_difference(" ".join(name), was, is_))
    if wanted.created:
        violations += [
            f"created too often: {' '.join(name)}"
            for name in (found.created - wanted.created).elements()
            if name not in passing
        ]
    violations += [
        f"replaced instead of kept: {' '.join(name)}"
        for name in (wanted.survivors - found.survivors).elements()
        if name not in passing
    ]
    return violations


def _by_name(states: Counter[tuple[ObjectName, str]]) -> dict[ObjectName, list[str]]:
    found: dict[ObjectName, list[str]] = {}
    for name, text in states.elements():
        found.setdefault(name, []).append(text)
    return found


def _describe_difference(name: str, was: str | None, is_: str | None) -> str:
    if was is None or is_ is None:
        return f"{name} {'is missing' if is_ is None else 'should not exist'}"
    before, after = (dict(_flatten(msgspec.json.decode(each), "")) for each in (was, is_))
    other = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return f"{name}: " + "; ".join(f"{path} is {after.get(path)}, not {before.get(path)}" for path in other)


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _flatten(each, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _flatten(each, f"{path}[{index}]")
    else:
        yield path, value


def _object_name(resource: Resource, value: Object) -> ObjectName:
    metadata = value["metadata"]
    name = metadata["name"]
    if resource == CONFIG_MAPS and _revision(value):
        # By its content: its number depends on how many contents the operator has seen.
        name = f"{metadata['labels'][WORKLOAD_LABEL]}@{metadata['annotations'][CONTENT_ANNOTATION]}"
    return resource.kind, metadata.get("namespace", ""), _GENERATED_SUFFIX.sub("-*", name)


def _normalized(resource: Resource, value: Object, uids: dict[str, str]) -> str:
    """The object as text, without what differs from run to run: uids, times, numbers of revisions, nodes of pods."""
    metadata = value["metadata"]
    normalized: Object = {name: each for name, each in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    owners = [uids.get(each["uid"], "gone") for each in metadata.get("ownerReferences", ())]
    normalized["metadata"] = {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "owners": owners,
        "finalizers": metadata.get("finalizers", []),
        "ours": sorted(
            "/".join(path)
            for each in metadata.get("managedFields", ())
            # Not of claims, where it depends on whether we enlarged or created them; nor of namespaces, which the
            # server labels.
            if each["manager"] == OPERATOR and not each.get("subresource") and resource not in _SHARED_OWNERSHIP
            for path in parse_fields_v1(each["fieldsV1"])
        ),
    }
    if resource.group == GROUP and isinstance(normalized.get("status"), dict):
        normalized["status"] = {name: each for name, each in normalized["status"].items() if name != "revision"}
    if resource in _NUMBERED:
        numbered = (REVISION_ANNOTATION, WANTED_HASH_ANNOTATION)
        annotations = normalized["metadata"]["annotations"].items()
        normalized["metadata"]["annotations"] = {name: each for name, each in annotations if name not in numbered}
    if resource.group != GROUP and isinstance(normalized.get("status"), dict):
        normalized["status"].pop("observedGeneration", None)
    if resource == PODS:
        normalized["spec"] = {name: each for name, each in normalized["spec"].items() if name != "nodeName"}
        normalized.pop("status")
        normalized["phase"] = value["status"].get("phase")
        # The images before an in-place update: whether the sidecar was running by then depends on timing.
        normalized["metadata"]["annotations"] = {
            name: "" if name == IN_PLACE_UPDATE_ANNOTATION else each
            for name, each in metadata.get("annotations", {}).items()
        }
    text = msgspec.json.encode(normalized, order="deterministic").decode()
    for uid, name in uids.items():
        text = text.replace(uid, name)
    return _GENERATED_SUFFIX.sub("-*", _TIME.sub("TIME", text))
