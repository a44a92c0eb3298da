"""Programs that listen where a Service says, and the Services and Ingresses that lead to them."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES, NAMESPACES, SERVICES


@asynccontextmanager
async def project(client: Client, name: str) -> AsyncGenerator[str]:
    await client.apply({"metadata": {"name": name}}, NAMESPACES, manager="test")
    yield name
    # Addresses and hosts are the whole cluster's, so they are given back.
    for resource in (INGRESSES, SERVICES):
        for item in (await client.list(resource, name)).items:
            await client.delete(resource, item["metadata"]["name"], name)


@asynccontextmanager
async def backend(address: str, name: str) -> AsyncGenerator[tuple[str, int]]:
    """A program that says who it is and what it was asked."""

    async def tell(request: web.Request) -> web.Response:
        return web.json_response({"name": name, "path": request.path_qs, **request.headers})

    async def fail(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]), text="mine")

    async def echo(request: web.Request) -> web.WebSocketResponse:
        both = web.WebSocketResponse()
        await both.prepare(request)
        async for message in both:
            await both.send_str(message.data)
        return both

    application = web.Application()
    application.router.add_get("/fail/{status}", fail)
    application.router.add_get("/echo", echo)
    application.router.add_get("/{rest:.*}", tell)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    yield address, runner.addresses[0][1]
    await runner.cleanup()


async def serve(client: Client, namespace: str, name: str, address: str, port: int) -> None:
    """A Service of that address."""
    spec = {"clusterIP": address, "ports": [{"name": "http", "port": port}]}
    await client.apply({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, SERVICES, manager="test")


async def expose(client: Client, namespace: str, name: str, *paths: dict[str, Any]) -> str:
    """An Ingress at a host of its own, which is returned; all of it leads to the Service of its name, unless said."""
    host = f"{name}.{namespace}.localhost"
    spec = {"rules": [{"host": host, "http": {"paths": list(paths) or [lead("/", name)]}}]}
    await client.apply({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, INGRESSES, manager="test")
    return host


def lead(path: str, service: str, port: str = "http") -> dict[str, Any]:
    return {"path": path, "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"name": port}}}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
