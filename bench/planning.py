"""Planning: plans per second on one core, and the sizes of resources in etcd."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.figures import ROOT, Figure
from pincompute.api.documents import read_documents
from pincompute.api.kinds import KINDS
from pincompute.api.validation import parse_resource
from pincompute.objects.content import Object, object_label
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER

RUNS = 7
SECONDS = 0.2
"""Duration of each run."""
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Case(NamedTuple):
    """A document of the examples, with its Kubernetes objects."""

    name: str
    snapshot: Snapshot
    document: Object

    @property
    def kind(self) -> str:
        return str(self.snapshot.owner.kind)


def figures() -> Iterator[Figure]:
    cases = list(_cases(ROOT / "examples"))
    for kind in KINDS:
        of_kind = [case for case in cases if case.kind == kind]
        if of_kind:
            yield _speed(kind, of_kind)
            yield _resource(kind, of_kind)
            yield from _natives(kind, of_kind)


def _cases(folder: Path) -> Iterator[Case]:
    """Documents with the parts and runtimes of the examples, as in a cluster, after one plan."""
    files = sorted(folder.rglob("*.yaml"))
    documents = [(file, document) for file in files for document in read_documents(file.read_text(), str(file))]
    resources: list[Any] = [parse_resource(document, "me") for _, document in documents]
    runtimes = Runtimes.from_resources(resources)
    for (file, document), resource in zip(documents, resources, strict=True):
        metadata = msgspec.structs.replace(resource.metadata, uid="0" * 36, generation=1)
        owner = msgspec.structs.replace(resource, metadata=metadata)
        new = Snapshot(owner, (), (), LOCAL_CLUSTER, NOW, runtimes=runtimes)
        made = PLANNERS[resource.kind](new)
        natives = tuple(msgspec.convert(native, Native) for native in made.wanted)
        known = new._replace(natives=natives, owner=msgspec.structs.replace(owner, status=made.status))
        yield Case(f"{file.relative_to(folder)} {resource.metadata.name}", known, document.content)


def _speed(kind: str, cases: list[Case]) -> Figure:
    """Plans all examples of a kind in turn, with unchanged Kubernetes objects."""
    plan = PLANNERS[kind]
    found = []
    for _ in range(RUNS):
        plans, began = 0, time.perf_counter()
        while time.perf_counter() < began + SECONDS:
            for case in cases:
                plan(case.snapshot)
            plans += len(cases)
        found.append(plans / (time.perf_counter() - began))
    return Figure(f"plans.{_short(kind)}", "plans per second, one core", found, unit="plans/s")


def _resource(kind: str, cases: list[Case]) -> Figure:
    """Size of the resource in etcd: document and status as JSON."""
    sizes = {case.name: _bytes(_stored(case)) for case in cases}
    largest = max(sizes, key=sizes.__getitem__)
    return Figure(
        f"bytes.{_short(kind)}",
        f"resource size, one value per example; largest: {largest}",
        list(sizes.values()),
        unit="bytes",
    )


def _stored(case: Case) -> Object:
    owner = case.snapshot.owner
    return {**case.document, "metadata": owner.metadata, "status": owner.status}


def _natives(kind: str, cases: list[Case]) -> Iterator[Figure]:
    """Size of each Kubernetes object, and of all objects of a workload."""
    made = {case.name: PLANNERS[kind](case.snapshot).wanted for case in cases}
    sizes = {f"{name} {object_label(each)}": _bytes(each) for name, natives in made.items() for each in natives}
    if not sizes:
        return
    largest = max(sizes, key=sizes.__getitem__)
    yield Figure(
        f"bytes.{_short(kind)}.native",
        f"object size, one value per object; largest: {largest}",
        list(sizes.values()),
        unit="bytes",
    )
    whole = [sum(map(_bytes, natives)) for natives in made.values()]
    yield Figure(
        f"bytes.{_short(kind)}.natives", "size of all objects of a workload, one value per example", whole, unit="bytes"
    )


def _short(kind: str) -> str:
    return kind.removeprefix("Pinterest")


def _bytes(value: Any) -> int:
    return len(msgspec.json.encode(value))
