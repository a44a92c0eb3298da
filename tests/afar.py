"""Somebody who has nothing of a platform but the address of its desk, and what they show there."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import encode_basic_auth, web
from aiohttp.typedefs import Handler

from bare_platform import DESK_PORT, Entrance
from person import Person
from pincompute.api.names import DESK, SYSTEM
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICES
from pincompute.submission.credentials import GIT, STORE
from real_platform import PATIENCE


class Program(Person):
    """An account of a project."""

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "PIN_STATE": str(self.folder / "state"), "PIN_NAME": "afar", "PIN_TOKEN": "token"}


async def lead(client: Client, entrance: Entrance) -> None:
    """To the desk, by a port of every node; return when it answers there."""
    port = {"name": "https", "port": 443, "targetPort": "https", "nodePort": DESK_PORT}
    await client.patch(
        SERVICES, DESK, SYSTEM, {"spec": {"type": "NodePort", "ports": [port]}}, style="merge", manager="tests"
    )
    trusted = ssl.create_default_context(cafile=entrance.authority)
    async with aiohttp.ClientSession() as http, asyncio.timeout(PATIENCE):
        while True:
            try:
                async with http.get(f"{entrance.address}/healthz", ssl=trusted) as answer:
                    assert answer.status == 200
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)


CREDENTIALS = {STORE: "sesame", GIT: "http://desk:open@HOST"}
"""What whoever reads those files has to show."""


@asynccontextmanager
async def served(address: str, **folders: Path) -> AsyncGenerator[str]:
    """The files of folders, each below its name, for whoever asks from a pod and shows that they may."""
    application = web.Application(middlewares=[_shown])
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        application.router.add_static(f"/{name}", folder)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    try:
        yield f"http://{address}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@web.middleware
async def _shown(request: web.Request, handler: Handler) -> web.StreamResponse:
    known = {"artifacts": f"Bearer {CREDENTIALS[STORE]}", "git": encode_basic_auth("desk", "open")}
    if request.headers.get("Authorization") != known[request.path.split("/")[1]]:
        raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Basic"})
    return await handler(request)


def mirrored(repository: Path) -> str:
    """As any server of files can have it read by git."""
    name = f"{repository.name}.git"
    for words in ("clone", "--quiet", "--mirror", str(repository), name), ("-C", name, "update-server-info"):
        subprocess.run(("git", *words), cwd=repository.parent, check=True, capture_output=True)
    return name
