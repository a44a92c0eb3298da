"""Workloads without an owner among the members of their project, and objects of deleted workloads."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.structs import Metadata
from pincompute.objects.content import Object
from pincompute.planning.views.unowned import MAX_UNOWNED, LabelledObject, find_unowned, has_owner
from runtime_builders import build_resource, build_service


def project(**members: Object) -> Any:
    spec: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, "members": members}
    return build_resource({"kind": "Project", "metadata": {"name": "me"}, "spec": spec})


OWNED = project(owner={"people": ["ann"]})


def labelled(kind: str, name: str, workload: str, **metadata: Any) -> LabelledObject:
    labels = {WORKLOAD_LABEL: workload} if workload else {}
    return LabelledObject(kind, Metadata(name=name, labels=labels, **metadata))


@pytest.mark.parametrize(
    ("members", "owned"),
    [
        ({}, False),
        ({"owner": {}}, False),
        ({"owner": {"people": ["ann"]}}, True),
        ({"owner": {"programs": ["ci"]}}, True),
        ({"deployer": {"people": ["ann"]}}, False),
        ({"deployer": {"groups": ["team-ads"]}}, True),
        ({"viewer": {"programs": ["team-ads"]}}, False),
    ],
)
def test_owner_is_a_member_with_that_role_or_the_named_owner(members: dict[str, Object], owned: bool) -> None:
    assert has_owner(project(**members)) == owned


def test_lists_workloads_of_a_project_without_owner_first() -> None:
    pod = labelled("Pod", "old-1", "old")
    found = find_unowned(project(), [build_service("web"), build_service("api")], [pod])
    assert [(each.kind, each.name, each.workload) for each in found.objects] == [
        ("PinterestService", "api", "api"),
        ("PinterestService", "web", "web"),
        ("Pod", "old-1", "old"),
    ]
    assert found.objects[0].why == "no member of project me is its owner"


def test_lists_objects_of_deleted_workloads_only() -> None:
    objects = [
        labelled("Pod", "web-1", "web"),
        labelled("PersistentVolumeClaim", "data-db-0", "db", creation_timestamp="2026-01-31T12:00:00Z"),
        labelled("Pod", "db-0", "db", deletion_timestamp="2026-01-31T12:00:00Z"),
        labelled("ConfigMap", "foreign", ""),
    ]
    (found,) = find_unowned(OWNED, [build_service("web")], objects).objects
    assert (found.kind, found.name, found.since) == ("PersistentVolumeClaim", "data-db-0", "2026-01-31T12:00:00Z")
    assert found.why == "its workload was deleted"


def test_does_not_judge_an_unknown_project() -> None:
    assert find_unowned(None, [build_service("web")], []).objects == []


def test_is_bounded_and_counts_the_rest() -> None:
    found = find_unowned(OWNED, [], [labelled("Pod", f"old-{each}", "old") for each in range(MAX_UNOWNED + 7)])
    assert (len(found.objects), found.left_out) == (MAX_UNOWNED, 7)
