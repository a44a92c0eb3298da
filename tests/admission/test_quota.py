"""Messages of quota refusals: the rollout, what never fits, and the advice by the role of the caller."""

from __future__ import annotations

import msgspec
import pytest

from pincompute.admission.quota import QuotaRequest, check_quota
from pincompute.api.identity import Identity
from pincompute.api.project import Members, Project, RoleHolders
from pincompute.base.problem import Problem
from pincompute.planning.footprint import Footprint
from record_fixtures import project_with_quota, workload_key

OTHERS = {("PinterestService", "api"): Footprint("on-demand", pods=2)}
EXCEEDED = "web exceeds the on-demand quota of project ads"


def bounded_project(pods: int = 4) -> Project:
    found = project_with_quota(pods=pods)
    members = Members(owner=RoleHolders(people=["olga"]), deployer=RoleHolders(people=["dan"]))
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, members=members))


def quota_refusal(request: QuotaRequest, others: dict[tuple[str, str], Footprint] = OTHERS) -> Problem:
    problem = check_quota(request, {"on-demand": others}).problem
    assert problem is not None
    assert problem.what == EXCEEDED or problem.reason.code == "TierClosed"
    return problem


def request_of(pods: int, surge: int = 0, caller: Identity | None = None, limit: int = 4) -> QuotaRequest:
    return QuotaRequest(workload_key("web"), bounded_project(limit), Footprint("on-demand", pods=pods), surge, caller)


@pytest.mark.parametrize(
    ("pods", "surge", "limit", "text"),
    [
        (4, 1, 4, "4 requested (3 replicas and 1 more during a rollout), 4 allowed, 2 used by other workloads, 2 left"),
        (3, 0, 4, "3 requested, 4 allowed, 2 used by other workloads, 2 left"),
        (2, 1, 3, "2 requested (1 replica and 1 more during a rollout), 3 allowed, 2 used by other workloads, 1 left"),
        (2, 1, 1, "2 requested (1 replica and 1 more during a rollout), which never fits: the whole quota is 1"),
    ],
)  # fmt: skip
def test_pods_of_a_rollout_are_explained(pods: int, surge: int, limit: int, text: str) -> None:
    first, *_ = quota_refusal(request_of(pods, surge, limit=limit)).note.splitlines()
    assert first == f"pods: {text}"


@pytest.mark.parametrize(
    ("caller", "advice"),
    [
        (Identity("root", is_admin=True), "raise spec.quota.on-demand: kubectl edit project ads"),
        (Identity("olga"), "have the infrastructure team raise spec.quota.on-demand in the document of project ads"),
        (Identity("dan"), "ask team-ads (#ads-oncall), the owner of the project, for a larger quota"),
        (None, "ask team-ads (#ads-oncall), the owner of the project, for a larger quota"),
    ],
)
def test_advice_depends_on_the_role_of_the_caller(caller: Identity | None, advice: str) -> None:
    assert quota_refusal(request_of(3, caller=caller)).next == f"scale down or delete other workloads, or {advice}"
    # Freeing the quota of others does not help.
    assert quota_refusal(request_of(5, caller=caller)).next == f"request less, or {advice}"
    assert quota_refusal(request_of(5, caller=caller), {}).next == f"request less, or {advice}"
    closed = request_of(1, caller=caller)._replace(requested=Footprint("reserved", pods=1))
    expected = advice.replace("on-demand", "reserved")
    assert quota_refusal(closed).next == f"write tier: on-demand, or {expected}"
