"""Schedules on a real API server: invalid ones are refused by our rules, and Kubernetes accepts all valid ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.names import CLI_MANAGER, OPERATOR
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid
from pincompute.kube.resource import CRON_JOBS
from pincompute.objects.content import Object
from snapshot_strategies import new_snapshot, plan_snapshot
from workloads import cluster_client, new_project

pytestmark = pytest.mark.cluster

INVALID = {
    "schedule": ["0 0 3 * * *", "* * * *", "", "@often", "@every 5m", "TZ=UTC 0 3 * * *", "60 * * * *", "0 3 * * 7"],
    "timeZone": ["", "/", "../etc", "New York", "Europe/"],
}
VALID = ["*/15 6-22 * * mon-fri", "0 0 ? * ?", " 07  003 1,15 JAN-jun/2 SUN ", "5/20 * * * *", "@midnight", " @yearly "]


def document(project: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestCronJob",
        "metadata": {"name": name, "namespace": project},
        "spec": {"image": "nightly:1.0", "schedule": "0 3 * * *", **spec},
    }


async def create_cron_job(client: Client, content: Object) -> PinterestCronJob:
    made = await client.create(CUSTOM_RESOURCES["PinterestCronJob"], content, manager=CLI_MANAGER)
    return msgspec.convert(made, PinterestCronJob)


async def test_api_server_rejects_invalid_schedules_with_our_message(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        for field, values in INVALID.items():
            for value in values:
                with pytest.raises(Invalid) as refused:
                    await create_cron_job(client, document(project, "nightly", **{field: value}))
                assert f"spec.{field} " in str(refused.value), value


async def test_kubernetes_accepts_every_valid_schedule(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        for index, line in enumerate(VALID):
            owner = await create_cron_job(
                client, document(project, f"nightly-{index}", schedule=line, timeZone="Asia/Tehran")
            )
            native = next(each for each in plan_snapshot(new_snapshot(owner)).wanted if each["kind"] == "CronJob")
            made = await client.create(CRON_JOBS, native, manager=OPERATOR)
            assert made["spec"]["schedule"] == " ".join(line.split())


async def test_status_is_stored_unchanged(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        owner = await create_cron_job(client, document(project, "nightly"))
        manifest = {
            "apiVersion": owner.apiVersion,
            "kind": owner.kind,
            "metadata": {"name": "nightly", "namespace": project, "uid": owner.metadata.uid},
            "status": msgspec.to_builtins(plan_snapshot(new_snapshot(owner)).status),
        }
        stored = await client.apply(
            manifest, CUSTOM_RESOURCES["PinterestCronJob"], manager=OPERATOR, subresource="status"
        )
        assert msgspec.convert(stored, PinterestCronJob).status == plan_snapshot(new_snapshot(owner)).status
