"""The difference between what is wanted and what is seen, as steps: values that can be printed and compared."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.names import WANTED
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import NOT_OURS
from pincompute.objects.content import Object, identity
from pincompute.planning.snapshot import Native


class Create(NamedTuple):
    """Made by POST: that it exists already would mean that it is not ours."""

    native: Object


class Apply(NamedTuple):
    """Ours, and different: applied to the very object that was seen."""

    native: Object
    uid: str


class Delete(NamedTuple):
    """Ours, and no longer wanted."""

    kind: str
    name: str
    uid: str


Step = Create | Apply | Delete


class Difference(NamedTuple):
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()


def diff(owner_uid: str, seen: tuple[Native, ...], wanted: tuple[Object, ...]) -> Difference:
    """Nothing where everything is as wanted; what belongs to someone else is never touched."""
    by_name = {(native.kind, native.metadata.name): native for native in seen}
    steps: list[Step] = []
    problems = []
    for native in wanted:
        found = by_name.pop((native["kind"], native["metadata"]["name"]), None)
        if found is None:
            steps.append(Create(native))
        elif found.metadata.controller != owner_uid:
            problems.append(not_ours(native))
        elif found.wanted != native["metadata"]["annotations"][WANTED]:
            steps.append(Apply(native, found.metadata.uid))
    left = [native for native in by_name.values() if native.metadata.controller == owner_uid]
    steps += [Delete(native.kind, native.metadata.name, native.metadata.uid) for native in left]
    return Difference(tuple(steps), tuple(problems))


def not_ours(native: Object) -> Problem:
    name = native["metadata"]["name"]
    return Problem(
        NOT_OURS,
        f"{identity(native)} exists already and belongs to someone else",
        Where(object=f"{native['metadata']['namespace']}/{name}"),
        next=f"rename the workload, or remove that {native['kind']}",
    )
