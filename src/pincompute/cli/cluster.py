"""The adapter for a kubeconfig: documents are checked here, and written straight to Kubernetes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pincompute.api.admission import admit_all, admit_workload
from pincompute.api.documents import read, read_one
from pincompute.api.names import HAND
from pincompute.api.preview import Preview
from pincompute.api.summary import Summary
from pincompute.base.clock import SystemClock
from pincompute.cli.port import Port
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load


class ClusterPort(Workloads):
    """All but the submission is as the desk does it."""

    async def submit(self, text: str, file: str, project: str) -> Summary:
        return await self.write(admit_workload(read_one(text, file), project), manager=HAND)

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self.preview(admit_all(read(text), project), SystemClock().now())

    async def images(self) -> list[str]:
        """A cluster does not say what its registries hold."""
        return []


@asynccontextmanager
async def cluster_port(kubeconfig: str, context: str) -> AsyncIterator[Port]:
    async with Client(load(kubeconfig, context), agent="pin") as client:
        yield ClusterPort(client)
