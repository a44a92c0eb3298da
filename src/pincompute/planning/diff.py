"""Compares a plan with the native objects in the cluster and returns the steps that turn one into the other.

In: the uid of the owner, the native objects as last seen, and the plan. Out: steps, which are plain values, and
problems. The invariants:

- An object is written or deleted only if its controller is the owner, by uid. An object of the same name with another
  controller is reported as a problem and left alone; only an adoption, which the user asks for, takes it over.
- The exception is an object whose owner references were removed: if the operator has written it for a workload of this
  name, and it has no controller now, it is written again, with its owner.
- An object is compared by hash, not field by field. Every wanted object carries a hash of itself in an annotation
  (`natives.with_hashes`). If the object in the cluster carries the same hash, no step results, so that a pass which
  finds everything as wanted sends nothing. The fields themselves cannot be compared: the API server adds defaults, and
  other controllers write fields of their own.
- A second hash covers the fields that Kubernetes never changes. If it differs, `immutable.IMMUTABLE_FIELDS` decides
  whether the object is deleted, for the next pass to create it again, or the change is refused.
- Objects that are neither wanted nor retained are deleted. Objects that are already being deleted are not deleted a
  second time.
"""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.names import IMMUTABLE_HASH_ANNOTATION, WANTED_HASH_ANNOTATION, WORKLOAD_LABEL
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CANNOT_CHANGE, DELETION_STUCK, NOT_OWNED
from pincompute.objects.content import Object, object_label
from pincompute.planning.diagnosis.excerpts import join_with_and
from pincompute.planning.immutable import IMMUTABLE_FIELDS, OnImmutableChange
from pincompute.planning.plan import Adoption, Plan
from pincompute.planning.snapshot import Native
from pincompute.planning.steps import Adopt, Apply, Create, Delete, Step


class Difference(NamedTuple):
    """Steps from the actual to the wanted state, and the objects for which there is none."""

    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()


def diff(owner_uid: str, seen: tuple[Native, ...], plan: Plan) -> Difference:
    """Return the steps that lead from the objects seen to the objects wanted; none if they agree."""
    if plan.problems:
        return Difference((), plan.problems)
    unclaimed = {(native.kind, native.metadata.name): native for native in seen}
    steps: list[Step] = []
    problems = list(plan.adoption.problems)
    for wanted in plan.wanted:
        existing = unclaimed.pop((wanted["kind"], wanted["metadata"]["name"]), None)
        if existing and existing.metadata.holding_finalizers:
            problems.append(_held_problem(wanted, existing))
            continue
        match _step_for(wanted, existing, owner_uid, plan.adoption):
            case Problem() as problem:
                problems.append(problem)
            case None:
                pass
            case step:
                steps.append(step)
    for key in plan.retained:
        unclaimed.pop(key, None)
    unwanted = [native for native in unclaimed.values() if native.metadata.controller_uid == owner_uid]
    steps += [Delete(native.kind, native.metadata.name, native.metadata.uid) for native in unwanted]
    terminating = {native.metadata.uid for native in seen if native.metadata.deletion_timestamp}
    steps = [step for step in steps if not (isinstance(step, Delete) and step.uid in terminating)]
    adoption_steps = () if problems else plan.adoption.steps
    return Difference((*steps, *plan.steps, *adoption_steps), tuple(problems))


def _step_for(
    wanted: Object, existing: Native | None, owner_uid: str, adoption: Adoption
) -> Create | Adopt | Apply | Delete | Problem | None:
    """The step that makes one object as it is wanted; None if it is, or if its time to be adopted comes later."""
    if existing is None:
        return Create(wanted)
    metadata = existing.metadata
    if metadata.uid in adoption.adopt_now:
        return Adopt(wanted, metadata.uid)
    if metadata.controller_uid == owner_uid:
        unchanged = existing.wanted_hash == wanted["metadata"]["annotations"][WANTED_HASH_ANNOTATION]
        return None if unchanged else _change_step(wanted, existing)
    if metadata.uid in adoption.adopt_later:
        return None
    return Apply(wanted, metadata.uid) if _lost_its_owner(existing, wanted) else not_ours_problem(wanted)


def _lost_its_owner(existing: Native, wanted: Object) -> bool:
    """Whether the operator has written an object for a workload of this name, and nothing controls it now."""
    metadata = existing.metadata
    written_by_operator = bool(metadata.own_fields_hash)
    wanted_labels = wanted["metadata"].get("labels", {})
    same_workload = metadata.labels.get(WORKLOAD_LABEL, "") == wanted_labels.get(WORKLOAD_LABEL, "")
    return not metadata.controller_uid and written_by_operator and same_workload


def _change_step(wanted: Object, existing: Native) -> Apply | Delete | Problem:
    """Apply if only mutable fields differ; otherwise the action that the table of immutable fields names."""
    hash_before = existing.metadata.annotations.get(IMMUTABLE_HASH_ANNOTATION)
    hash_after = wanted["metadata"]["annotations"].get(IMMUTABLE_HASH_ANNOTATION)
    if hash_before is None or hash_before == hash_after:
        return Apply(wanted, existing.metadata.uid, existing.metadata.only_applied)
    immutable = IMMUTABLE_FIELDS[existing.kind]
    if immutable.on_change is OnImmutableChange.REFUSE:
        return Problem(
            CANNOT_CHANGE,
            f"{object_label(wanted)} exists, and Kubernetes cannot change its {', '.join(immutable.fields)}",
            Where(object=f"{wanted['metadata']['namespace']}/{existing.metadata.name}"),
            next=(
                "undo the change, or delete the object first:"
                f" kubectl delete {existing.kind.lower()} {existing.metadata.name}"
            ),
        )
    orphan_pods = immutable.on_change is OnImmutableChange.RECREATE_AROUND_PODS
    return Delete(existing.kind, existing.metadata.name, existing.metadata.uid, orphan_pods)


def _held_problem(wanted: Object, existing: Native) -> Problem:
    """A deleted object, which is created again as soon as it is gone."""
    name, project, kind = existing.metadata.name, wanted["metadata"].get("namespace", ""), existing.kind.lower()
    finalizers = join_with_and(existing.metadata.holding_finalizers)
    return Problem(
        DELETION_STUCK,
        f"{object_label(wanted)} was deleted, and is held by {finalizers}",
        Where(object=f"{project}/{name}".strip("/")),
        f"it is created again as soon as the controller of {finalizers} has let it go",
        f"ask for the controller of {finalizers}: kubectl get {kind} {name} -n {project} -o yaml",
    )


def not_ours_problem(native: Object) -> Problem:
    name, project = native["metadata"]["name"], native["metadata"].get("namespace", "")
    delete = f": kubectl delete {native['kind'].lower()} {name} -n {project}" if project else ""
    return Problem(
        NOT_OWNED,
        f"{object_label(native)} exists already and has another owner",
        Where(object=f"{project}/{name}".strip("/")),
        next=f"rename the workload, or delete that {native['kind']}{delete}",
    )
