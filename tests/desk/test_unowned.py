"""`GET …/unowned` by the desk, and the same with a kubeconfig: members see their project, and nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from pincompute.api.names import CLI_MANAGER, ENGINE, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.resource import CONFIG_MAPS, Object
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from tenant_projects import tenant_projects
from workloads import cluster_client

pytestmark = pytest.mark.cluster


def config_map(project: str, name: str, workload: str) -> Object:
    metadata = {"name": name, "namespace": project, "labels": {WORKLOAD_LABEL: workload}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"secret": "not shown"}}


async def test_members_list_unowned_objects_and_nothing_is_deleted(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here, cluster_client(plane) as client:
        path = f"/projects/{here.ads}/unowned"
        assert (await here.deploy("dan", here.ads)).status == 201
        for name, workload in (("left", "gone"), ("used", "hello")):
            await client.create(CONFIG_MAPS, config_map(here.ads, name, workload), manager=CLI_MANAGER)
        left = {"kind": "ConfigMap", "name": "left", "workload": "gone", "why": "its workload was deleted"}
        found = await here.request("vera", "GET", path)
        assert (found.status, found.body["leftOut"]) == (200, 0)
        (shown,) = found.body["objects"]
        assert shown.items() >= left.items()
        assert "not shown" not in str(found.body)
        # Of another project a member learns not even whether it exists.
        assert (await here.request("otto", "GET", path)).reason == "ProjectUnknown"
        deployers: Object = {"spec": {"members": {"owner": None}}}
        await client.patch(CUSTOM_RESOURCES["Project"], here.ads, "", deployers, style="merge", manager=ENGINE)
        direct = await WorkloadClient(client).list_unowned(here.ads)
        assert [(each.kind, each.name) for each in direct.objects] == [
            ("PinterestService", "hello"),
            ("ConfigMap", "left"),
        ]
        assert (await client.get(CONFIG_MAPS, "left", here.ads))["data"] == {"secret": "not shown"}
