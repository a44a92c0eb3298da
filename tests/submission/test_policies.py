"""Policies at the desk, before a real API server: who is denied, by which part of which rule; nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.api.policy import Policy
from pincompute.base.problem import Refused
from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import NotFound
from pincompute.submission.policies import read_policies
from tenants import Answer, tenants
from workloads import HELLO

pytestmark = pytest.mark.cluster

TWO_COPIES = {
    "name": "two-copies",
    "rule": "workload.spec.replicas >= 2 || who.name == 'olga'",
    "message": "a service has two copies at least",
    "kinds": ["PinterestService"],
}
BROKEN = {"name": "broken", "rule": "workload.metadata.labels.team == 'ads'", "message": "it names its team"}
NAMED = Policy(name="named", rule="workload.metadata.name != 'bad'", message="no work is bad")
TWO = HELLO.replace("port: 8080", "port: 8080, replicas: 2")


def codes(answer: Answer) -> list[str]:
    return [each["reason"] for each in answer.body["errors"]]


async def test_who_keeps_a_policy_is_let_in_and_who_does_not_is_told_why(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path, {"policies": [TWO_COPIES]}) as here:
        denied = await here.deploy("dan", here.ads)
        assert denied.status == 403
        (said,) = denied.body["errors"]
        assert said["detail"] == (
            f"hello is denied by the policy two-copies of project {here.ads}: a service has two copies at least"
        )
        assert said["because"] == {
            "says": "workload.spec.replicas >= 2 || who.name == 'olga'",
            "decided": True,
            "parts": [
                {"says": "workload.spec.replicas >= 2", "is": "workload.spec.replicas is 1", "decided": True},
                {"says": "who.name == 'olga'", "is": "who.name is 'dan'", "decided": True},
            ],
        }
        with pytest.raises(NotFound):
            await here.world.client.get(NOUNS["PinterestService"], "hello", here.ads)
        # It is on record as it was told.
        receipt = await here.ask("dan", "GET", f"/projects/{here.ads}/submissions/submission-1")
        assert receipt.body["errors"] == denied.body["errors"]
        (preview,) = (await here.ask("dan", "POST", f"/projects/{here.ads}/plans", HELLO)).body
        assert (preview["refused"], len(preview["changes"]) > 3) == (denied.body["errors"], True)
        assert (await here.deploy("dan", here.ads, TWO)).status == 201
        # What is there keeps to it, too; and of others nobody asks.
        scaled = {"change": "scale", "copies": 1}
        one = await here.ask("dan", "POST", f"/projects/{here.ads}/workloads/hello/changes", scaled)
        assert codes(one) == ["PolicyDenied"]
        assert (await here.ask("olga", "POST", f"/projects/{here.ads}/workloads/hello/changes", scaled)).status == 200
        assert (await here.deploy("otto", here.search)).status == 201
        assert (await here.ask("dan", "DELETE", f"/projects/{here.ads}/workloads/hello")).status == 204


async def test_all_that_is_in_the_way_is_told_at_once(plane: ControlPlane, tmp_path: Path) -> None:
    said: dict[str, Any] = {"policies": [TWO_COPIES, BROKEN], "quota": {"on-demand": {"pods": 1}}}
    async with tenants(plane, tmp_path, said, (NAMED,)) as here:
        bad = HELLO.replace("name: hello", "name: bad").replace("port: 8080", "port: 8080, cpu: 3")
        denied = await here.deploy("dan", here.ads, bad)
        assert denied.status == 403
        assert codes(denied) == ["PolicyDenied", "PolicyDenied", "PolicyUnclear", "QuotaTooSmall"]
        assert f"ask team-{here.ads} (#{here.ads})" in denied.body["errors"][2]["next"]
        assert codes(await here.deploy("otto", here.search, bad)) == ["PolicyDenied"]
        assert (await here.deploy("otto", here.search)).status == 201


def test_the_platforms_policies_are_read_with_their_lines() -> None:
    text = "policies:\n  - {name: a, rule: requests.cpu < 8, message: m}\n"
    assert read_policies(text, "platform.yaml") == (Policy(name="a", rule="requests.cpu < 8", message="m"),)
    wrong = f"{text.replace('cpu', 'cpus')}  - {{name: a, rule: 'false', message: m}}\n"
    with pytest.raises(Refused) as refused:
        read_policies(wrong, "platform.yaml")
    assert [(each.where.line, each.what) for each in refused.value.problems] == [
        (2, "at character 10 of the rule: requests has no field 'cpus'"),
        (3, "two policies are called 'a'"),
    ]
    with pytest.raises(Refused, match="there is no field 'rul'"):
        read_policies(wrong.replace("rule", "rul"), "platform.yaml")
    assert read_policies("policies: []", "") == ()
