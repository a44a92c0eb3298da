"""Policies at the desk, with a real API server: a violation is refused with its rule, and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.api.policy import Policy
from pincompute.base.problem import Refused
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.policies import read_policies
from pincompute.kube.errors import NotFound
from tenant_projects import TenantResponse, tenant_projects
from workloads import HELLO

pytestmark = pytest.mark.cluster

TWO_COPIES = {
    "name": "two-replicas",
    "rule": "workload.spec.replicas >= 2 || who.name == 'olga'",
    "message": "a service has two replicas at least",
    "kinds": ["PinterestService"],
}
BROKEN = {"name": "broken", "rule": "workload.metadata.labels.team == 'ads'", "message": "it names its team"}
NAMED = Policy(name="named", rule="workload.metadata.name != 'bad'", message="no work is bad")
TWO = HELLO.replace("port: 8080", "port: 8080, replicas: 2")


def codes(answer: TenantResponse) -> list[str]:
    return [each["reason"] for each in answer.body["errors"]]


async def test_policy_violation_is_refused_with_its_rule(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path, {"policies": [TWO_COPIES]}) as here:
        denied = await here.deploy("dan", here.ads)
        assert denied.status == 403
        (said,) = denied.body["errors"]
        assert said["detail"] == (
            f"hello violates policy two-replicas of project {here.ads}: a service has two replicas at least"
        )
        assert said["rule"] == {
            "expression": "workload.spec.replicas >= 2 || who.name == 'olga'",
            "decided": True,
            "parts": [
                {"expression": "workload.spec.replicas >= 2", "value": "workload.spec.replicas is 1", "decided": True},
                {"expression": "who.name == 'olga'", "value": "who.name is 'dan'", "decided": True},
            ],
        }
        with pytest.raises(NotFound):
            await here.world.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", here.ads)
        # It is recorded with the same problems.
        receipt = await here.request("dan", "GET", f"/projects/{here.ads}/submissions/submission-1")
        assert receipt.body["errors"] == denied.body["errors"]
        (preview,) = (await here.request("dan", "POST", f"/projects/{here.ads}/plans", HELLO)).body
        assert (preview["errors"], len(preview["changes"]) > 3) == (denied.body["errors"], True)
        assert (await here.deploy("dan", here.ads, TWO)).status == 201
        # Changes must satisfy the policy, too; a deletion need not.
        scaled = {"change": "scale", "replicas": 1}
        one = await here.request("dan", "POST", f"/projects/{here.ads}/workloads/hello/changes", scaled)
        assert codes(one) == ["PolicyDenied"]
        assert (
            await here.request("olga", "POST", f"/projects/{here.ads}/workloads/hello/changes", scaled)
        ).status == 200
        assert (await here.deploy("otto", here.search)).status == 201
        assert (await here.request("dan", "DELETE", f"/projects/{here.ads}/workloads/hello")).status == 204


async def test_policy_and_quota_problems_are_reported_together(plane: ControlPlane, tmp_path: Path) -> None:
    said: dict[str, Any] = {"policies": [TWO_COPIES, BROKEN], "quota": {"on-demand": {"pods": 1}}}
    async with tenant_projects(plane, tmp_path, said, (NAMED,)) as here:
        bad = HELLO.replace("name: hello", "name: bad").replace("port: 8080", "port: 8080, cpu: 3")
        denied = await here.deploy("dan", here.ads, bad)
        assert denied.status == 403
        assert codes(denied) == ["PolicyDenied", "PolicyDenied", "PolicyInvalid", "QuotaTooSmall"]
        assert f"ask team-{here.ads} (#{here.ads})" in denied.body["errors"][2]["next"]
        assert codes(await here.deploy("otto", here.search, bad)) == ["PolicyDenied"]
        assert (await here.deploy("otto", here.search)).status == 201


def test_errors_in_platform_policies_have_lines() -> None:
    text = "policies:\n  - {name: a, rule: requests.cpu < 8, message: m}\n"
    assert read_policies(text, "platform.yaml") == (Policy(name="a", rule="requests.cpu < 8", message="m"),)
    wrong = f"{text.replace('cpu', 'cpus')}  - {{name: a, rule: 'false', message: m}}\n"
    with pytest.raises(Refused) as refused:
        read_policies(wrong, "platform.yaml")
    assert [(each.where.line, each.what) for each in refused.value.problems] == [
        (2, "at character 10 of the rule: requests has no field 'cpus'"),
        (3, "duplicate policy name 'a'"),
    ]
    with pytest.raises(Refused, match="unknown field 'rul'"):
        read_policies(wrong.replace("rule", "rul"), "platform.yaml")
    assert read_policies("policies: []", "") == ()
