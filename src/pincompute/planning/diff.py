"""The difference between what is wanted and what is seen, as steps: values that can be printed and compared."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.names import FIXED, WANTED
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_CHANGE, NOT_OURS
from pincompute.objects.content import Object, identity
from pincompute.planning.fixed import FIXED as TABLE
from pincompute.planning.fixed import Instead
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Native
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Step


class Difference(NamedTuple):
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()


def diff(owner_uid: str, seen: tuple[Native, ...], plan: Plan) -> Difference:
    """Nothing where everything is as wanted; what belongs to someone else is never touched."""
    if plan.problems:
        return Difference((), plan.problems)
    by_name = {(native.kind, native.metadata.name): native for native in seen}
    steps: list[Step] = []
    problems = list(plan.taking.problems)
    for native in plan.wanted:
        found = by_name.pop((native["kind"], native["metadata"]["name"]), None)
        if found is None:
            steps.append(Create(native))
        elif found.metadata.uid in plan.taking.now:
            steps.append(Adopt(native, found.metadata.uid))
        elif found.metadata.controller != owner_uid:
            problems += [] if found.metadata.uid in plan.taking.later else [not_ours(native)]
        elif found.wanted != native["metadata"]["annotations"][WANTED]:
            match _change(native, found):
                case Problem() as problem:
                    problems.append(problem)
                case step:
                    steps.append(step)
    for each in plan.kept:
        by_name.pop(each, None)
    left = [native for native in by_name.values() if native.metadata.controller == owner_uid]
    steps += [Delete(native.kind, native.metadata.name, native.metadata.uid) for native in left]
    # What is on its way out is not told to go once more.
    going = {each.metadata.uid for each in seen if each.metadata.deletion_timestamp}
    steps = [each for each in steps if not (isinstance(each, Delete) and each.uid in going)]
    taken = () if problems else plan.taking.steps
    return Difference((*steps, *plan.steps, *taken), tuple(problems))


def _change(native: Object, found: Native) -> Apply | Delete | Problem:
    """In place where Kubernetes can; where it never does, as the one table says."""
    before, after = found.metadata.annotations.get(FIXED), native["metadata"]["annotations"].get(FIXED)
    if before is None or before == after:
        return Apply(native, found.metadata.uid, found.metadata.applied)
    known = TABLE[found.kind]
    if known.instead is Instead.REFUSED:
        return Problem(
            CANNOT_CHANGE,
            f"{identity(native)} exists, and {', '.join(known.fields)} can never change in it",
            Where(object=f"{native['metadata']['namespace']}/{found.metadata.name}"),
            next=f"undo the change, or remove it first: kubectl delete {found.kind.lower()} {found.metadata.name}",
        )
    return Delete(found.kind, found.metadata.name, found.metadata.uid, known.instead is Instead.PODS_STAY)


def not_ours(native: Object) -> Problem:
    name, project = native["metadata"]["name"], native["metadata"].get("namespace", "")
    remove = f": kubectl delete {native['kind'].lower()} {name} -n {project}" if project else ""
    return Problem(
        NOT_OURS,
        f"{identity(native)} exists already and belongs to someone else",
        Where(object=f"{project}/{name}".strip("/")),
        next=f"rename the workload, or remove that {native['kind']}{remove}",
    )
