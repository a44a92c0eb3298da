"""A cluster with our CRDs, and a project for each test."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from control_plane import ControlPlane
from pincompute.api.manifests import crds
from pincompute.api.names import ENGINE, PROJECT_LABEL
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CRDS, NAMESPACES, Resource

HELLO = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: hello}
spec: {image: "hello:dev", port: 8080}
"""


@asynccontextmanager
async def cluster_client(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Apply our CRDs; yield a client when the API server serves them."""
    async with Client(plane.access(), agent="tests") as client:
        for crd in crds():
            await client.apply(crd, CRDS, manager=ENGINE)
            await wait_until_established(client, crd["metadata"]["name"])
        yield client


async def new_project(client: Client) -> str:
    name = f"t-{secrets.token_hex(4)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {PROJECT_LABEL: name}}}
    await client.create(NAMESPACES, namespace, manager=ENGINE)
    return name


async def wait_until_established(client: Client, name: str) -> None:
    """Wait until a CRD is established and the API server answers requests for its kind."""
    async with asyncio.timeout(60):
        async with aclosing(client.watch(CRDS, fields=f"metadata.name={name}")) as events:
            async for event in events:
                spec = event.object["spec"]
                conditions = event.object.get("status", {}).get("conditions") or ()
                if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                    break
        version, names = spec["versions"][0]["name"], spec["names"]
        while not await _serves(client, Resource(spec["group"], version, names["plural"], names["kind"])):
            pass


async def _serves(client: Client, resource: Resource) -> bool:
    try:
        await client.raw("GET", resource.path(), query={"limit": "1"})
    except NotFound:
        return False
    return True
