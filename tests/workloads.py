"""What tests of the loop and the desk share: a cluster that knows our kinds, and a project a test."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from control_plane import ControlPlane
from pincompute.api.manifests import crds
from pincompute.api.names import ENGINE, PROJECT
from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, NAMESPACES

HELLO = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: hello}
spec: {image: "hello:dev", port: 8080}
"""


@asynccontextmanager
async def cluster(plane: ControlPlane) -> AsyncGenerator[Client]:
    """A client of a cluster that serves our kinds."""
    async with Client(plane.access(), agent="tests") as client:
        for crd in crds():
            await client.apply(crd, CRDS, manager=ENGINE)
            await established(client, crd["metadata"]["name"])
        yield client


async def new_project(client: Client) -> str:
    name = f"t-{secrets.token_hex(4)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {PROJECT: name}}}
    await client.create(NAMESPACES, namespace, manager=ENGINE)
    return name


async def established(client: Client, name: str) -> None:
    async with asyncio.timeout(20), aclosing(client.watch(CRDS, fields=f"metadata.name={name}")) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions") or ()
            if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                return
