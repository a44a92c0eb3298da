"""A user does not learn the names of projects in which they have no role."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.resource import Object
from tenant_projects import tenant_projects, unknown_project
from workloads import HELLO

pytestmark = pytest.mark.cluster


async def test_member_of_a_project_without_a_namespace_learns_of_no_other(plane: ControlPlane, tmp_path: Path) -> None:
    """While a project is created, or deleted, its members pass authorization and its namespace does not exist."""
    async with tenant_projects(plane, tmp_path) as here:
        missing, nothing = unknown_project(), unknown_project()
        members: Object = {"owner": {"people": ["vera"]}}
        spec: Object = {"owner": "team-x", "review": "open", "quota": {"on-demand": {}}, "members": members}
        whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": missing}, "spec": spec}
        await here.world.client.apply(whole, CUSTOM_RESOURCES["Project"], manager=ENGINE)
        try:
            for method, path, body in (
                ("GET", "workloads", ""),
                ("GET", "", ""),
                ("POST", "plans", HELLO),
                ("POST", "submissions", HELLO),
            ):
                told = {
                    project: (await here.request(who, method, f"/projects/{project}/{path}".rstrip("/"), body)).body
                    for who, project in (("vera", missing), ("vera", nothing))
                }
                for name in (here.ads, here.search):
                    assert name not in str(told), (method, path)
                if method == "GET":
                    assert str(told[missing]).replace(missing, "P") == str(told[nothing]).replace(nothing, "P")
        finally:
            await here.world.client.delete(CUSTOM_RESOURCES["Project"], missing)
