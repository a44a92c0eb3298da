"""Deleted objects of a workload that a finalizer holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.status import ResourceStatus
from pincompute.planning.diff import diff
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Native

WANTED = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hello", "namespace": "me", "annotations": {"pinterest.com/wanted": "new"}},
}


def owned_service(**metadata: Any) -> Native:
    owned = {"ownerReferences": [{"uid": "owner-1", "controller": True}]}
    return msgspec.convert(
        {"kind": "Service", "metadata": {"name": "hello", "namespace": "me", **owned, **metadata}}, Native
    )


def test_names_the_finalizer_and_leaves_the_object_alone() -> None:
    held = owned_service(deletionTimestamp="2026-01-31T11:59:00Z", finalizers=["example.com/lb", "example.com/dns"])
    found = diff("owner-1", (held,), Plan((WANTED,), ResourceStatus()))
    assert found.steps == ()
    (problem,) = found.problems
    assert problem.reason.code == "DeletionStuck"
    assert problem.what == "Service/hello was deleted, and is held by example.com/dns and example.com/lb"
    assert problem.next.endswith("kubectl get service hello -n me -o yaml")


@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": ["example.com/lb"]},
        {"deletionTimestamp": "2026-01-31T11:59:00Z", "finalizers": ["foregroundDeletion"]},
        {"deletionTimestamp": "2026-01-31T11:59:00Z", "finalizers": ["service.kubernetes.io/load-balancer-cleanup"]},
    ],
)
def test_finalizers_of_kubernetes_and_of_objects_that_stay_are_no_problem(metadata: dict[str, Any]) -> None:
    assert diff("owner-1", (owned_service(**metadata),), Plan((WANTED,), ResourceStatus())).problems == ()
