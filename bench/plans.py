"""The thought: plans a second on one core, and what each kind weighs in the store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.figures import ROOT, Figure
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.kinds import KINDS
from pincompute.objects.content import Object, identity
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.planners import PLANNERS
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Native, Snapshot

RUNS = 7
SECONDS = 0.2
"""How long each run plans."""
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Case(NamedTuple):
    """One document of the examples, with all that was made of it."""

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
    """With the parts and runtimes of the examples, as a cluster would have them; planned once already."""
    files = sorted(folder.rglob("*.yaml"))
    documents = [(file, document) for file in files for document in read(file.read_text(), str(file))]
    nouns: list[Any] = [admit(document, "me") for _, document in documents]
    runtimes = Runtimes.of(nouns)
    for (file, document), noun in zip(documents, nouns, strict=True):
        metadata = msgspec.structs.replace(noun.metadata, uid="0" * 36, generation=1)
        owner = msgspec.structs.replace(noun, metadata=metadata)
        new = Snapshot(owner, (), (), LAPTOP, NOW, runtimes=runtimes)
        made = PLANNERS[noun.kind](new)
        natives = tuple(msgspec.convert(native, Native) for native in made.wanted)
        known = new._replace(natives=natives, owner=msgspec.structs.replace(owner, status=made.status))
        yield Case(f"{file.relative_to(folder)} {noun.metadata.name}", known, document.content)


def _speed(kind: str, cases: list[Case]) -> Figure:
    """Of all its examples in turn, with their natives seen as they were made."""
    plan = PLANNERS[kind]
    found = []
    for _ in range(RUNS):
        plans, began = 0, time.perf_counter()
        while time.perf_counter() < began + SECONDS:
            for case in cases:
                plan(case.snapshot)
            plans += len(cases)
        found.append(plans / (time.perf_counter() - began))
    return Figure(f"plans.{_short(kind)}", "plans a second, one core", found, unit="plans/s")


def _resource(kind: str, cases: list[Case]) -> Figure:
    """As the store keeps it: the document and its status, in JSON."""
    sizes = {case.name: _bytes(_stored(case)) for case in cases}
    largest = max(sizes, key=sizes.__getitem__)
    return Figure(
        f"bytes.{_short(kind)}", f"of the resource, one a run; largest: {largest}", list(sizes.values()), unit="bytes"
    )


def _stored(case: Case) -> Object:
    owner = case.snapshot.owner
    return {**case.document, "metadata": owner.metadata, "status": owner.status}


def _natives(kind: str, cases: list[Case]) -> Iterator[Figure]:
    """Each native, and all of a workload's together."""
    made = {case.name: PLANNERS[kind](case.snapshot).wanted for case in cases}
    sizes = {f"{name} {identity(each)}": _bytes(each) for name, natives in made.items() for each in natives}
    if not sizes:
        return
    largest = max(sizes, key=sizes.__getitem__)
    yield Figure(
        f"bytes.{_short(kind)}.native",
        f"of a native, one a run; largest: {largest}",
        list(sizes.values()),
        unit="bytes",
    )
    whole = [sum(map(_bytes, natives)) for natives in made.values()]
    yield Figure(f"bytes.{_short(kind)}.natives", "of all natives of one, one a run", whole, unit="bytes")


def _short(kind: str) -> str:
    return kind.removeprefix("Pinterest")


def _bytes(value: Any) -> int:
    return len(msgspec.json.encode(value))
