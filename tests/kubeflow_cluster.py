"""A cluster that knows Kubeflow's kinds, with nobody who makes them so."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kubeflow import definitions

from control_plane import ControlPlane
from pincompute.api.names import ENGINE
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS
from workloads import cluster, established


@asynccontextmanager
async def kubeflow_cluster(plane: ControlPlane) -> AsyncGenerator[Client]:
    async with cluster(plane) as client:
        for crd in definitions().values():
            await client.apply(crd, CRDS, manager=ENGINE)
            await established(client, crd["metadata"]["name"])
        yield client
