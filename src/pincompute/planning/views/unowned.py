"""Finds workloads whose project has no owner among its members, and Kubernetes objects whose workload was deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.api.membership import ProjectRole
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.project import Project
from pincompute.api.structs import Metadata
from pincompute.api.unowned import UnownedObject, UnownedObjects
from pincompute.api.workload import Workload

MAX_UNOWNED = 500
"""Objects in a response: a project may hold many thousands."""


class LabelledObject(NamedTuple):
    """A Kubernetes object with the label of a workload."""

    kind: str
    metadata: Metadata


def find_unowned(
    project: Project | None, workloads: Iterable[Workload], objects: Iterable[LabelledObject]
) -> UnownedObjects:
    """List them by kind and name, workloads first. Without a project, the owner is unknown and not judged."""
    known = sorted(workloads, key=lambda each: (each.kind, each.metadata.name))
    found = [*_without_owner(project, known), *_without_workload({each.metadata.name for each in known}, objects)]
    return UnownedObjects(objects=found[:MAX_UNOWNED], left_out=max(0, len(found) - MAX_UNOWNED))


def has_owner(project: Project) -> bool:
    """Whether a member has the role owner, or the named owner is a member in any role."""
    members = {role: project.spec.members.holders_of(role) for role in ProjectRole}
    owners = members[ProjectRole.OWNER]
    named = {name for holders in members.values() if holders for name in (*holders.people, *holders.groups)}
    return bool(owners and any(owners.entries())) or project.spec.owner in named


def _without_owner(project: Project | None, workloads: Iterable[Workload]) -> Iterator[UnownedObject]:
    if project is None or has_owner(project):
        return
    why = f"no member of project {project.metadata.name} is its owner"
    for each in workloads:
        metadata = each.metadata
        yield UnownedObject(
            kind=each.kind, name=metadata.name, workload=metadata.name, why=why, since=metadata.creation_timestamp
        )


def _without_workload(workloads: set[str], objects: Iterable[LabelledObject]) -> Iterator[UnownedObject]:
    """Objects that are being deleted are left out: the garbage collector takes a moment after each deletion."""
    for kind, metadata in sorted(objects, key=lambda each: (each.kind, each.metadata.name)):
        workload = metadata.labels.get(WORKLOAD_LABEL, "")
        if workload and workload not in workloads and not metadata.deletion_timestamp:
            yield UnownedObject(
                kind=kind,
                name=metadata.name,
                workload=workload,
                why="its workload was deleted",
                since=metadata.creation_timestamp,
            )
