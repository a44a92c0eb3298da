"""A kind that the cluster does not serve delays only the workloads that need it, until it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from generate_kubeflow_fields import definitions

from cli_user import wait_all_gone
from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER, ENGINE
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.validation import parse_resource
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CRDS, PYTORCH_JOBS
from running_operator import OperatedCluster, operated_cluster
from workloads import wait_until_established

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
            await delete_crd(client, crd["metadata"]["name"])
        yield client


async def delete_crd(client: Client, name: str) -> None:
    try:
        await client.delete(CRDS, name)
    except NotFound:
        return
    async with asyncio.timeout(60):
        await wait_all_gone(client, CRDS, "", fields=f"metadata.name={name}")


async def wait_for_message(operated: OperatedCluster, reason: str) -> str:
    async with asyncio.timeout(60), aclosing(operated.workloads.follow(operated.project, "ranking")) as summaries:
        async for summary in summaries:
            if summary.reason == reason:
                return f"{summary.message}; {summary.next}"
    raise AssertionError("the workload was deleted")


async def test_only_training_waits_for_kubeflow_and_starts_once_it_is_installed(
    plane: ControlPlane, without_kubeflow: Client
) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        ranking = parse_resource(read_documents(RANKING)[0], operated.project)
        assert isinstance(ranking, PinterestTrainingJob)
        await operated.workloads.write(ranking, manager=CLI_MANAGER)
        message = await wait_for_message(operated, "KindNotServed")
        assert "cluster test serves no PyTorchJob" in message
        assert "pin up --with kubeflow" in message
        for crd in definitions().values():
            await without_kubeflow.apply(crd, CRDS, manager=ENGINE)
            await wait_until_established(without_kubeflow, crd["metadata"]["name"])
        await wait_for_message(operated, "Progressing")
        job = await operated.client.get(PYTORCH_JOBS, "ranking", operated.project)
        assert list(job["spec"]["pytorchReplicaSpecs"]) == ["Master", "Worker"]
