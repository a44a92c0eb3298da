"""`GET …/usage` by the desk: viewers see their project, and a node that is not there leaves its pods unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from pincompute.api.names import CLI_MANAGER, WORKLOAD_LABEL
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from tenant_projects import tenant_projects
from workloads import cluster_client

pytestmark = pytest.mark.cluster


async def create_running_pod(client: Client, project: str, name: str) -> None:
    metadata = {"name": name, "namespace": project, "labels": {WORKLOAD_LABEL: "hello"}}
    pod: Object = {
        "metadata": metadata,
        "spec": {
            "nodeName": "absent",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "hello", "resources": {"requests": {"cpu": "500m"}}}],
        },
    }
    await client.create(PODS, pod, manager=CLI_MANAGER)
    container = {
        "name": "main", "restartCount": 3, "ready": True, "image": "hello", "imageID": "",
        "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}},
    }  # fmt: skip
    running: Object = {"status": {"phase": "Running", "containerStatuses": [container]}}
    await client.patch(PODS, name, project, running, style="merge", manager=CLI_MANAGER, subresource="status")


async def test_viewers_see_usage_of_their_project_only(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here, cluster_client(plane) as client:
        assert (await here.deploy("dan", here.ads)).status == 201
        path = f"/projects/{here.ads}/usage"
        assert (await here.request("vera", "GET", path)).body == []
        await create_running_pod(client, here.ads, "hello-1")
        await create_running_pod(client, here.search, "hello-2")
        (found,) = (await here.request("vera", "GET", path)).body
        assert found == {
            "name": "hello",
            "running": 1,
            "cpu": {"used": None, "allotted": 500, "requested": 500, "limit": None, "unknown": 1},
            "memory": {"used": None, "allotted": 0, "requested": 0, "limit": None, "unknown": 1},
            "restarts": 3,
            "note": "the node does not exist any more (absent)",
        }
        # Of another project a member learns not even whether it exists.
        assert (await here.request("otto", "GET", path)).reason == "ProjectUnknown"
        assert [each.restarts for each in await WorkloadClient(client).list_usage(here.ads)] == [3]
        detail = (await here.request("vera", "GET", f"/projects/{here.ads}/workloads/hello/account")).body
        assert detail["usage"] == found
