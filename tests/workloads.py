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
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CRDS, NAMESPACES, Resource

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
    """Return when the API server says that it serves the kind, and does."""
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
