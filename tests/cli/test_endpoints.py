"""`pin endpoints`: members, and replicas that differ from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pincompute.api.workload_detail import Membership, ReplicaDetail, WorkloadDetail
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.cli.endpoints import format_members

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def detail_of(*replicas: ReplicaDetail) -> WorkloadDetail:
    resource: dict[str, Any] = {"metadata": {"name": "web", "namespace": "me"}, "spec": {"serverset": {"readers": []}}}
    summary = WorkloadSummary(
        kind="PinterestService", project="me", name="web", uid="u1", generation=1, revision=1, goal="Ready", ready=1,
        wanted=1, image="web:1",
    )  # fmt: skip
    return WorkloadDetail(summary=summary, resource=resource, replicas=list(replicas))


def replica(name: str, *, ready: bool, membership: Membership | None) -> ReplicaDetail:
    return ReplicaDetail(name=name, node="n1", ready=ready, address="10.0.0.1", membership=membership)


def membership(message: str, *, registered: bool) -> Membership:
    session = "0x1f" if registered else ""
    return Membership(registered=registered, since="2026-01-31T11:59:00Z", session=session, message=message)


MEMBER = membership("member_1 of me/web, session 0x1f", registered=True)


def test_members_with_address_node_and_session() -> None:
    assert format_members(detail_of(replica("web-1", ready=True, membership=MEMBER)), NOW).splitlines() == [
        "serverset me/web: 1 member, 1 ready",
        "  REPLICA  ADDRESS   NODE  MEMBER FOR  SESSION",
        "  web-1    10.0.0.1  n1            1m     0x1f",
    ]


def test_ready_replica_that_is_no_member_is_named_with_its_reason() -> None:
    detail = detail_of(
        replica("web-1", ready=True, membership=membership("ZooKeeper is unreachable", registered=False)),
        replica("web-2", ready=True, membership=None),
        replica("web-3", ready=False, membership=MEMBER),
        replica("web-4", ready=False, membership=None),
    )
    lines = format_members(detail, NOW).splitlines()
    assert lines[0] == "serverset me/web: 1 member, 2 ready"
    assert lines[3:] == [
        "  ready and no member: web-1 on n1: ZooKeeper is unreachable, for 1m",
        "  ready and no member: web-2 on n1: no registrar has reported",
        "  member and not ready: web-3 on n1: it is removed within a moment",
        "next: pin why web",
    ]
