"""A plan told to a person: which natives would be made, changed, replaced or removed, and in which fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from pincompute.api.names import TEMPLATE
from pincompute.api.noun import Noun
from pincompute.api.preview import FieldChange, NativeChange, Preview, Verb
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Where
from pincompute.objects.comparison import Change, changes, shortened
from pincompute.objects.content import Object, identity
from pincompute.planning.diff import Difference, diff
from pincompute.planning.plan import Plan
from pincompute.planning.planners import PLANNERS
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete

LAPTOP = Cluster(name="main", domain="localhost", port=8080)
"""What `pin up` makes: taken for granted where no cluster is asked."""

_OURS = ("metadata.annotations.", "metadata.labels.", "metadata.ownerReferences")
"""Bookkeeping that follows from the rest."""


N = TypeVar("N", bound=Noun)


class Surroundings(NamedTuple):
    """What planning knows beside the work itself."""

    cluster: Cluster = LAPTOP
    projects: Mapping[str, Project] = {}
    runtimes: Runtimes = Runtimes()

    @classmethod
    def of(cls, nouns: Sequence[Noun], cluster: Cluster = LAPTOP) -> Surroundings:
        """Projects and runtimes of a set are there for the rest of it."""
        projects = {each.metadata.name: each for each in nouns if isinstance(each, Project)}
        return cls(cluster, projects, Runtimes.of(nouns))


class Foreseen(NamedTuple):
    told: tuple[Preview, ...] = ()
    problems: tuple[Problem, ...] = ()


def first(noun: N) -> N:
    """As it will be when it is made, where it is not there yet."""
    return msgspec.structs.replace(noun, metadata=msgspec.structs.replace(noun.metadata, generation=1))


def foresee(snapshot: Snapshot, live: Mapping[str, Object]) -> Foreseen:
    """What would come of it, or why nothing would; `live` holds the natives whole, by identity."""
    plan = settled(snapshot)
    difference = diff(snapshot.owner.metadata.uid, snapshot.natives, plan)
    metadata = snapshot.owner.metadata
    place = "/".join(part for part in (metadata.namespace, metadata.name) if part)
    problems = [
        each if str(each.where) else each._replace(where=Where(object=place))
        for each in (*plan.problems, *difference.problems)
    ]
    if problems:
        return Foreseen(problems=tuple(dict.fromkeys(problems)))
    return Foreseen((_preview(snapshot, plan, difference, live),))


def settled(snapshot: Snapshot) -> Plan:
    """After as many passes as it takes: some natives are only wanted once others are there."""
    plan = PLANNERS[snapshot.owner.kind](snapshot)
    while plan.more and (new := _unseen(plan, snapshot.natives)):
        snapshot = snapshot._replace(natives=(*snapshot.natives, *new))
        plan = PLANNERS[snapshot.owner.kind](snapshot)
    return plan


def _unseen(plan: Plan, seen: Sequence[Native]) -> list[Native]:
    there = {(native.kind, native.metadata.name) for native in seen}
    new = (native for native in plan.wanted if (native["kind"], native["metadata"]["name"]) not in there)
    return [msgspec.convert(native, Native) for native in new]


def _preview(snapshot: Snapshot, plan: Plan, difference: Difference, live: Mapping[str, Object]) -> Preview:
    wanted = [identity(native) for native in plan.wanted]
    # What only touches pods is done to them later, and changes no native.
    told = [_told(step, wanted, live) for step in difference.steps if isinstance(step, Create | Apply | Adopt | Delete)]
    metadata = snapshot.owner.metadata
    return Preview(
        kind=snapshot.owner.kind,
        project=metadata.namespace,
        name=metadata.name,
        address=getattr(plan.status, "address", ""),
        changes=told,
        unchanged=len(set(wanted) - {each.native for each in told}),
        restarts=any(each.path.startswith("spec.template.spec") for one in told for each in one.fields),
        natives=list(plan.wanted),
    )


def _told(step: Create | Apply | Adopt | Delete, wanted: Sequence[str], live: Mapping[str, Object]) -> NativeChange:
    match step:
        case Create(native):
            return NativeChange(verb=Verb.MAKE, native=identity(native))
        case Apply(native) | Adopt(native):
            fields = [_field(each) for each in changes(live.get(identity(native), {}), native)]
            return NativeChange(
                verb=Verb.CHANGE, native=identity(native), fields=[each for each in fields if _says(each)]
            )
        case Delete(kind, name):
            whole = f"{kind}/{name}"
            return NativeChange(verb=Verb.REPLACE if whole in wanted else Verb.REMOVE, native=whole)


def _says(field: FieldChange) -> bool:
    return not field.path.startswith(_OURS) and TEMPLATE not in field.path


def _field(change: Change) -> FieldChange:
    return FieldChange(path=change.path, before=shortened(change.before), after=shortened(change.after))
