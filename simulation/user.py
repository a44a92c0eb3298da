"""A simulated user: writes, edits and deletes custom resources. Requests of users never meet a fault."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from pincompute.api.change import Change
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.base.reasons import PROJECT_UNKNOWN
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.resource import Object, Resource
from pincompute.platforms.kubernetes.workloads import WorkloadClient

DEFAULT_PROJECT = "me"
"""The project of documents that name none."""
MAX_TRIES = 600
"""One per second: ten minutes, far longer than any operation takes."""


class SimulatedUser:
    """Uses the same client code as the CLI and the desk."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def write(self, document: Object) -> None:
        """Submits a workload as the desk does; applies other kinds directly."""
        resource: Any = parse_resource(read_documents(msgspec.json.encode(document).decode())[0], DEFAULT_PROJECT)
        if isinstance(resource, Workload):
            await self._submit(resource)
            return
        manifest = {"metadata": {"name": resource.metadata.name}, "spec": msgspec.to_builtins(resource.spec)}
        await self.client.apply(manifest, CUSTOM_RESOURCES[resource.kind], manager=CLI_MANAGER)

    async def _submit(self, workload: Workload) -> None:
        """Retries until the project exists, which the user may have created a moment ago."""
        for _ in range(MAX_TRIES):
            try:
                await WorkloadClient(self.client).write(workload, manager=CLI_MANAGER)
            except Refused as refused:
                if refused.problems[0].reason is not PROJECT_UNKNOWN:
                    raise
                await asyncio.sleep(1)
            else:
                return
        raise AssertionError(f"the project {workload.metadata.namespace} was not created")

    async def change(self, name: str, change: Change) -> None:
        """Applies a change, retrying while it is refused: a rerun needs a failed task, a rollback a recorded
        revision."""
        for left in range(MAX_TRIES, 0, -1):
            try:
                await WorkloadClient(self.client).change(DEFAULT_PROJECT, name, change, manager=CLI_MANAGER)
            except Refused:
                if left == 1:
                    raise
                await asyncio.sleep(1)
            else:
                return

    async def annotate(self, kind: str, name: str, annotations: dict[str, str]) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch(CUSTOM_RESOURCES[kind], name, DEFAULT_PROJECT, body, style="merge", manager="kubectl")

    async def delete(self, kind: str | Resource, name: str, namespace: str = DEFAULT_PROJECT) -> None:
        resource = CUSTOM_RESOURCES[kind] if isinstance(kind, str) else kind
        await self.client.delete(resource, name, namespace if resource.namespaced else "")
