"""Preview of a plan for `pin plan`: the Kubernetes objects that would be created, updated, replaced or deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.names import TEMPLATE_HASH_LABEL
from pincompute.api.preview import FieldChange, NativeChange, ObjectAction, Preview
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Where
from pincompute.objects.comparison import FieldDifference, field_differences, short_text
from pincompute.objects.content import Object, object_label
from pincompute.planning.diff import Difference, diff
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.plan import Plan
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pincompute.planning.steps import Adopt, Apply, Create, Delete

LOCAL_CLUSTER = Cluster(name="main", domain="localhost", port=8080)
"""The cluster that `pin up` starts; assumed if a file is planned without a cluster."""

_BOOKKEEPING_PATHS = ("metadata.annotations.", "metadata.labels.", "metadata.ownerReferences")
"""Fields that only follow from others, and are left out of a preview."""


_MAX_QUICK_BYTES = 8_192
_MAX_QUICK_TASKS = 500
"""Larger workloads are planned beside the event loop."""

N = TypeVar("N", bound=CustomResource)


class PlanningInputs(NamedTuple):
    """Inputs of planning other than the resource itself."""

    cluster: Cluster = LOCAL_CLUSTER
    projects: Mapping[str, Project] = {}
    runtimes: Runtimes = Runtimes()

    @classmethod
    def of(cls, resources: Sequence[CustomResource], cluster: Cluster = LOCAL_CLUSTER) -> PlanningInputs:
        """Inputs from a set of documents: its workloads are planned with its own projects and runtimes."""
        projects = {each.metadata.name: each for each in resources if isinstance(each, Project)}
        return cls(cluster, projects, Runtimes.from_resources(resources))


class PlanPreview(NamedTuple):
    """Either one preview, or the problems that prevent the plan from being applied."""

    previews: tuple[Preview, ...] = ()
    problems: tuple[Problem, ...] = ()


def as_first_generation(resource: N) -> N:
    """The resource as the API server will return it after its creation."""
    return msgspec.structs.replace(resource, metadata=msgspec.structs.replace(resource.metadata, generation=1))


def preview_plan(snapshot: Snapshot, live: Mapping[str, Object]) -> PlanPreview:
    """The preview of the converged plan. `live` has the complete objects by label, to compare their fields."""
    plan = converged_plan(snapshot)
    difference = diff(snapshot.owner.metadata.uid, snapshot.natives, plan)
    metadata = snapshot.owner.metadata
    key = "/".join(part for part in (metadata.namespace, metadata.name) if part)
    problems = [
        each if str(each.where) else each._replace(where=Where(object=key))
        for each in (*plan.problems, *difference.problems)
    ]
    if problems:
        return PlanPreview(problems=tuple(dict.fromkeys(problems)))
    return PlanPreview((_build_preview(snapshot, plan, difference, live),))


def is_large(resource: CustomResource) -> bool:
    """True if planning takes longer than an event loop should be held: by its size, or by the number of its tasks."""
    tasks = getattr(resource.spec, "task_count", 0)
    return tasks > _MAX_QUICK_TASKS or len(msgspec.json.encode(resource.spec)) > _MAX_QUICK_BYTES


def converged_plan(snapshot: Snapshot) -> Plan:
    """The plan after all its stages: some objects are wanted only once others exist, which takes several passes."""
    plan = PLANNERS[snapshot.owner.kind](snapshot)
    while plan.has_next_stage and (created := _objects_to_create(plan, snapshot.natives)):
        snapshot = snapshot._replace(natives=(*snapshot.natives, *created))
        plan = PLANNERS[snapshot.owner.kind](snapshot)
    return plan


def _objects_to_create(plan: Plan, seen: Sequence[Native]) -> list[Native]:
    existing = {(native.kind, native.metadata.name) for native in seen}
    new = (native for native in plan.wanted if (native["kind"], native["metadata"]["name"]) not in existing)
    return [msgspec.convert(native, Native) for native in new]


def _build_preview(snapshot: Snapshot, plan: Plan, difference: Difference, live: Mapping[str, Object]) -> Preview:
    wanted = [object_label(native) for native in plan.wanted]
    # Steps on pods follow from these, and change no object of the plan.
    changes = [
        _object_change(step, wanted, live)
        for step in difference.steps
        if isinstance(step, Create | Apply | Adopt | Delete)
    ]
    metadata = snapshot.owner.metadata
    return Preview(
        kind=snapshot.owner.kind,
        project=metadata.namespace,
        name=metadata.name,
        address=getattr(plan.status, "address", ""),
        changes=changes,
        unchanged=len(set(wanted) - {change.native for change in changes}),
        restarts_replicas=any(
            field.path.startswith("spec.template.spec") for change in changes for field in change.fields
        ),
        natives=list(plan.wanted),
    )


def _object_change(
    step: Create | Apply | Adopt | Delete, wanted: Sequence[str], live: Mapping[str, Object]
) -> NativeChange:
    match step:
        case Create(native):
            return NativeChange(action=ObjectAction.CREATE, native=object_label(native))
        case Apply(native) | Adopt(native):
            label = object_label(native)
            fields = [_field_change(each) for each in field_differences(live.get(label, {}), native)]
            return NativeChange(
                action=ObjectAction.UPDATE, native=label, fields=[each for each in fields if not _is_bookkeeping(each)]
            )
        case Delete(kind, name):
            label = f"{kind}/{name}"
            return NativeChange(action=ObjectAction.REPLACE if label in wanted else ObjectAction.DELETE, native=label)


def _is_bookkeeping(field: FieldChange) -> bool:
    return field.path.startswith(_BOOKKEEPING_PATHS) or TEMPLATE_HASH_LABEL in field.path


def _field_change(change: FieldDifference) -> FieldChange:
    return FieldChange(path=change.path, before=short_text(change.before), after=short_text(change.after))
