"""Plans of changes: what a change would do, why it would be refused, and that nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.controller.resources import CUSTOM_RESOURCES
from tenant_projects import TenantProjects, tenant_projects
from workloads import HELLO

pytestmark = pytest.mark.cluster

SCALE = {"change": "scale", "replicas": 3}
FEW_PODS = {"quota": {"on-demand": {"pods": 10}}}


async def plan_of(here: TenantProjects, who: str, change: object, name: str = "hello") -> Any:
    return await here.request(who, "POST", f"/projects/{here.ads}/workloads/{name}/plans", change)


async def test_plan_has_the_effects_of_the_change_and_writes_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path, FEW_PODS) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        before = await here.world.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", here.ads)
        found = await plan_of(here, "dan", SCALE)
        assert found.status == 200
        assert (found.body["effects"], found.body["fields"]) == (["1 replica -> 3"], ["replicas 1 -> 3"])
        assert found.body["errors"] == []
        assert any("pods" in each for each in found.body["quotaAfter"])
        unchanged = await plan_of(here, "dan", {"change": "scale", "replicas": 1})
        assert (unchanged.body["effects"], unchanged.body["fields"]) == (["already has 1 replica"], [])
        after = await here.world.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", here.ads)
        assert after["spec"] == before["spec"]
        assert [id_ for id_, _ in await here.world.outcomes("hello", here.ads)] == ["submission-1"]


async def test_plan_names_every_reason_for_which_the_change_would_be_refused(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with tenant_projects(plane, tmp_path, FEW_PODS) as here:
        assert (await here.deploy("dan", here.ads)).status == 201
        found = await plan_of(here, "dan", {"change": "scale", "replicas": 50})
        assert [each["reason"] for each in found.body["errors"]] == ["QuotaTooSmall"]
        # A viewer sees what it would do, and that it is not for a viewer.
        found = await plan_of(here, "vera", SCALE)
        assert found.body["effects"] == ["1 replica -> 3"]
        assert [each["reason"] for each in found.body["errors"]] == ["Forbidden"]


async def test_plan_that_cannot_be_made_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        assert (await here.deploy("dan", here.ads, HELLO)).status == 201
        assert (await plan_of(here, "dan", {"change": "rollback"})).reason == "RevisionUnknown"
        assert (await plan_of(here, "dan", {"change": "scale", "replicas": -1})).reason == "DocumentInvalid"
        assert (await plan_of(here, "dan", SCALE, "nothing")).reason == "WorkloadUnknown"
        assert (await plan_of(here, "otto", SCALE)).reason == "ProjectUnknown"
