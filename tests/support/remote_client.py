"""A client on another machine, with only the address of the desk and a token; and servers that the desk reads."""

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

from bare_platform import DESK_PORT, DeskEndpoint
from cli_user import CliUser
from pincompute.api.names import DESK, SYSTEM_NAMESPACE
from pincompute.desk.outbound_credentials import ARTIFACTS_TOKEN_FILE, GIT_CREDENTIALS_FILE
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICES
from real_platform import WAIT_TIMEOUT_S


class RemoteProgram(CliUser):
    """A program with a service account token of a project."""

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "PIN_STATE": str(self.folder / "state"), "PIN_NAME": "afar", "PIN_TOKEN": "token"}


async def expose_desk(client: Client, entrance: DeskEndpoint) -> None:
    """Exposes the desk at a port of every node; returns once it responds there."""
    port = {"name": "https", "port": 443, "targetPort": "https", "nodePort": DESK_PORT}
    await client.patch(
        SERVICES,
        DESK,
        SYSTEM_NAMESPACE,
        {"spec": {"type": "NodePort", "ports": [port]}},
        style="merge",
        manager="tests",
    )
    trusted = ssl.create_default_context(cafile=entrance.authority)
    async with aiohttp.ClientSession() as http, asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            try:
                async with http.get(f"{entrance.address}/healthz", ssl=trusted) as answer:
                    assert answer.status == 200
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)


CREDENTIALS = {ARTIFACTS_TOKEN_FILE: "sesame", GIT_CREDENTIALS_FILE: "https://desk:open@HOST"}
"""Credentials that the file server requires."""


@asynccontextmanager
async def file_server(address: str, tls: ssl.SSLContext | None = None, **folders: Path) -> AsyncGenerator[str]:
    """Serves folders to pods, each below its name, with authentication."""
    application = web.Application(middlewares=[_shown])
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        application.router.add_static(f"/{name}", folder)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://{address}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@web.middleware
async def _shown(request: web.Request, handler: Handler) -> web.StreamResponse:
    known = {"artifacts": f"Bearer {CREDENTIALS[ARTIFACTS_TOKEN_FILE]}", "git": encode_basic_auth("desk", "open")}
    if request.headers.get("Authorization") != known[request.path.split("/")[1]]:
        raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Basic"})
    return await handler(request)


def mirror_for_http(repository: Path) -> str:
    """Mirrors a repository so that git can clone it from a file server."""
    name = f"{repository.name}.git"
    for words in ("clone", "--quiet", "--mirror", str(repository), name), ("-C", name, "update-server-info"):
        subprocess.run(("git", *words), cwd=repository.parent, check=True, capture_output=True)
    return name
