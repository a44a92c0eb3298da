"""Schedules on a real API server: the cluster's rule refuses in our words, and Kubernetes takes what we take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.cron_job import PinterestCronJob
from pincompute.api.names import HAND, OPERATOR
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid
from pincompute.kube.resource import CRON_JOBS
from pincompute.objects.content import Object
from workloads import cluster, new_project
from worlds import alone, plan

pytestmark = pytest.mark.cluster

REFUSED = {
    "schedule": ["0 0 3 * * *", "* * * *", "", "@often", "@every 5m", "TZ=UTC 0 3 * * *", "60 * * * *", "0 3 * * 7"],
    "timeZone": ["", "/", "../etc", "New York", "Europe/"],
}
TAKEN = ["*/15 6-22 * * mon-fri", "0 0 ? * ?", " 07  003 1,15 JAN-jun/2 SUN ", "5/20 * * * *", "@midnight", " @yearly "]


def document(project: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestCronJob",
        "metadata": {"name": name, "namespace": project},
        "spec": {"image": "nightly:1.0", "schedule": "0 3 * * *", **spec},
    }


async def written(client: Client, content: Object) -> PinterestCronJob:
    made = await client.create(NOUNS["PinterestCronJob"], content, manager=HAND)
    return msgspec.convert(made, PinterestCronJob)


async def test_what_is_written_past_our_door_is_refused_in_our_words(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        for field, values in REFUSED.items():
            for value in values:
                with pytest.raises(Invalid) as refused:
                    await written(client, document(project, "nightly", **{field: value}))
                assert f"spec.{field} " in str(refused.value), value


async def test_kubernetes_takes_every_schedule_that_we_take(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        for index, line in enumerate(TAKEN):
            owner = await written(client, document(project, f"nightly-{index}", schedule=line, timeZone="Asia/Tehran"))
            native = next(each for each in plan(alone(owner)).wanted if each["kind"] == "CronJob")
            made = await client.create(CRON_JOBS, native, manager=OPERATOR)
            assert made["spec"]["schedule"] == " ".join(line.split())


async def test_a_status_is_kept_whole(plane: ControlPlane) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        owner = await written(client, document(project, "nightly"))
        said = {
            "apiVersion": owner.apiVersion,
            "kind": owner.kind,
            "metadata": {"name": "nightly", "namespace": project, "uid": owner.metadata.uid},
            "status": msgspec.to_builtins(plan(alone(owner)).status),
        }
        kept = await client.apply(said, NOUNS["PinterestCronJob"], manager=OPERATOR, subresource="status")
        assert msgspec.convert(kept, PinterestCronJob).status == plan(alone(owner)).status
