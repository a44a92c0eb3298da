"""A cluster with Kubeflow's CRDs, without its controllers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from generate_kubeflow_fields import definitions

from control_plane import ControlPlane
from pincompute.api.names import ENGINE
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS
from workloads import cluster_client, wait_until_established


@asynccontextmanager
async def kubeflow_cluster(plane: ControlPlane) -> AsyncGenerator[Client]:
    async with cluster_client(plane) as client:
        for crd in definitions().values():
            await client.apply(crd, CRDS, manager=ENGINE)
            await wait_until_established(client, crd["metadata"]["name"])
        yield client
