"""What a cluster does not have hinders nobody but those who need it, and them only until it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from kubeflow import definitions

from control_plane import ControlPlane
from operated import World, world
from person import all_gone
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import ENGINE, HAND
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CRDS, PYTORCH_JOBS
from workloads import established

pytestmark = pytest.mark.cluster

RANKING = """\
apiVersion: pinterest.com/v1
kind: PinterestTrainingJob
metadata: {name: ranking}
spec: {image: "ranking:7", workers: 1}
"""


@pytest.fixture
async def without_kubeflow(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="tests") as client:
        for crd in definitions().values():
            await gone(client, crd["metadata"]["name"])
        yield client


async def gone(client: Client, name: str) -> None:
    try:
        await client.delete(CRDS, name)
    except NotFound:
        return
    async with asyncio.timeout(60):
        await all_gone(client, CRDS, "", fields=f"metadata.name={name}")


async def told(here: World, reason: str) -> str:
    async with asyncio.timeout(60), aclosing(here.workloads.follow(here.project, "ranking")) as summaries:
        async for summary in summaries:
            if summary.reason == reason:
                return f"{summary.message}; {summary.next}"
    raise AssertionError("it went away")


async def test_only_training_waits_for_kubeflow_and_goes_on_when_it_comes(
    plane: ControlPlane, without_kubeflow: Client
) -> None:
    async with world(plane) as here:
        await here.write()
        await here.until("Progressing", 1)
        ranking = admit(read(RANKING)[0], here.project)
        assert isinstance(ranking, PinterestTrainingJob)
        await here.workloads.write(ranking, manager=HAND)
        said = await told(here, "KindNotServed")
        assert "the cluster test serves no PyTorchJob" in said
        assert "pin up --with kubeflow" in said
        for crd in definitions().values():
            await without_kubeflow.apply(crd, CRDS, manager=ENGINE)
            await established(without_kubeflow, crd["metadata"]["name"])
        await told(here, "Progressing")
        job = await here.client.get(PYTORCH_JOBS, "ranking", here.project)
        assert list(job["spec"]["pytorchReplicaSpecs"]) == ["Master", "Worker"]
