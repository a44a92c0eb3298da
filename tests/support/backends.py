"""HTTP servers on the addresses of Services, and the Services and Ingresses that route to them."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES, NAMESPACES, SERVICES


@asynccontextmanager
async def backend_project(client: Client, name: str) -> AsyncGenerator[str]:
    await client.apply({"metadata": {"name": name}}, NAMESPACES, manager="test")
    yield name
    # Cluster IPs and hosts are cluster-wide, so they are released.
    for resource in (INGRESSES, SERVICES):
        for item in (await client.list(resource, name)).items:
            await client.delete(resource, item["metadata"]["name"], name)


@asynccontextmanager
async def backend(address: str, name: str) -> AsyncGenerator[tuple[str, int]]:
    """A server that answers with its name, the path and the headers of the request."""

    async def describe_request(request: web.Request) -> web.Response:
        return web.json_response({"name": name, "path": request.path_qs, **request.headers})

    async def fail(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]), text="mine")

    async def echo(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        async for message in websocket:
            await websocket.send_str(message.data)
        return websocket

    application = web.Application()
    application.router.add_get("/fail/{status}", fail)
    application.router.add_get("/echo", echo)
    application.router.add_get("/{rest:.*}", describe_request)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    yield address, runner.addresses[0][1]
    await runner.cleanup()


async def create_service(client: Client, namespace: str, name: str, address: str, port: int) -> None:
    """Create a Service with this cluster IP."""
    spec = {"clusterIP": address, "ports": [{"name": "http", "port": port}]}
    await client.apply({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, SERVICES, manager="test")


async def create_ingress(client: Client, namespace: str, name: str, *paths: dict[str, Any]) -> str:
    """Create an Ingress with its own host, which is returned. Default path: everything to the Service of its name."""
    host = f"{name}.{namespace}.localhost"
    spec = {"rules": [{"host": host, "http": {"paths": list(paths) or [ingress_path("/", name)]}}]}
    await client.apply({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, INGRESSES, manager="test")
    return host


def ingress_path(path: str, service: str, port: str = "http") -> dict[str, Any]:
    return {"path": path, "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"name": port}}}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
