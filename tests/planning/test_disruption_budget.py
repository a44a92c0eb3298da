"""Disruption budgets: only where one keeps a replica from being evicted."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.stateful_set import PinterestStatefulSet, StatefulSetSpec
from pincompute.api.structs import Metadata
from pincompute.planning.diff import diff
from pincompute.planning.steps import Create, Delete
from snapshot_strategies import UID, new_snapshot, plan_snapshot, snapshot_after

METADATA = Metadata(name="web", namespace="me", uid=UID, generation=1)


def new_service(replicas: int, unavailable: int | str = "25%") -> PinterestService:
    spec = ServiceSpec(image="web:1", port=80, replicas=replicas, unavailable=unavailable)
    return PinterestService(metadata=METADATA, spec=spec)


def budget_shares(owner: PinterestService | PinterestStatefulSet) -> list[int | str]:
    wanted = plan_snapshot(new_snapshot(owner)).wanted
    return [each["spec"]["maxUnavailable"] for each in wanted if each["kind"] == "PodDisruptionBudget"]


@pytest.mark.parametrize(
    ("replicas", "unavailable"), [(0, "25%"), (1, "25%"), (1, 1), (2, 2), (3, "67%"), (3, "100%"), (0, 0)]
)
def test_service_without_protected_replica_has_no_budget(replicas: int, unavailable: int | str) -> None:
    assert budget_shares(new_service(replicas, unavailable)) == []


@pytest.mark.parametrize(("replicas", "unavailable"), [(1, 0), (1, "0%"), (2, "25%"), (2, 1), (3, "66%"), (100, "99%")])
def test_service_with_protected_replica_has_a_budget(replicas: int, unavailable: int | str) -> None:
    """With a share of 0, the only replica blocks the drain of its node."""
    assert budget_shares(new_service(replicas, unavailable)) == [unavailable]


@pytest.mark.parametrize(("replicas", "shares"), [(1, []), (2, [1])])
def test_stateful_set_has_a_budget_from_two_replicas(replicas: int, shares: list[int]) -> None:
    spec = StatefulSetSpec(image="db:1", port=80, replicas=replicas)
    assert budget_shares(PinterestStatefulSet(metadata=METADATA, spec=spec)) == shares


def test_scaling_creates_and_deletes_the_budget() -> None:
    snapshot = new_snapshot(new_service(1))
    snapshot = snapshot_after(snapshot, plan_snapshot(snapshot))
    scaled = msgspec.structs.replace(METADATA, generation=2)
    snapshot = snapshot._replace(owner=msgspec.structs.replace(new_service(2), metadata=scaled))
    plan = plan_snapshot(snapshot)
    steps = diff(UID, snapshot.natives, plan).steps
    assert [each.native["kind"] for each in steps if isinstance(each, Create)] == ["PodDisruptionBudget"]
    snapshot = snapshot_after(snapshot, plan)._replace(owner=new_service(1))
    steps = diff(UID, snapshot.natives, plan_snapshot(snapshot)).steps
    assert [each.kind for each in steps if isinstance(each, Delete)] == ["PodDisruptionBudget"]
