"""A small server with the API of Artifactory's generic repositories, as far as builds need it.

It verifies checksums and tokens, stores properties and lists folders. Artifactory itself is not available to tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import unquote

from aiohttp import web
from aiohttp.test_utils import TestServer

TOKEN = "sesame"


class Artifactory(NamedTuple):
    address: str
    files: dict[str, bytes]
    properties: dict[str, dict[str, str]]


@asynccontextmanager
async def fake_artifactory(repository: str = "generic-local") -> AsyncGenerator[Artifactory]:
    files: dict[str, bytes] = {}
    properties: dict[str, dict[str, str]] = {}

    async def put(request: web.Request) -> web.Response:
        _authorized(request)
        raw, *said = request.rel_url.raw_path.removeprefix(f"/artifactory/{repository}/").split(";")
        path = unquote(raw)
        body = await request.read()
        if request.headers.get("X-Checksum-Sha256") != hashlib.sha256(body).hexdigest():
            return web.Response(status=409, text="checksums differ")
        files[path] = body
        properties[path] = {unquote(name): unquote(value) for name, value in (each.split("=", 1) for each in said)}
        return web.json_response({"repo": repository, "path": f"/{path}", "checksums": _checksums(body)}, status=201)

    async def get(request: web.Request) -> web.Response:
        _authorized(request)
        body = files.get(request.match_info["path"])
        if body is None:
            return web.json_response({"errors": [{"status": 404, "message": "File not found."}]}, status=404)
        sums = _checksums(body)
        return web.Response(body=body, headers={"X-Checksum-Sha256": sums["sha256"], "X-Checksum-Sha1": sums["sha1"]})

    async def info(request: web.Request) -> web.Response:
        _authorized(request)
        path = request.match_info["path"].strip("/") + "/"
        below = [each.removeprefix(path) for each in files if each.startswith(path)]
        if not below:
            return web.json_response({"errors": [{"status": 404, "message": "Unable to find item"}]}, status=404)
        names = sorted({each.split("/")[0] for each in below})
        children = [{"uri": f"/{each}", "folder": each not in below} for each in names]
        return web.json_response({"repo": repository, "path": f"/{path.strip('/')}", "children": children})

    app = web.Application()
    app.add_routes(
        [
            web.get(f"/artifactory/api/storage/{repository}/{{path:.+}}", info),
            web.get(f"/artifactory/{repository}/{{path:.+}}", get),
            web.put(f"/artifactory/{repository}/{{path:.+}}", put),
        ]
    )
    async with TestServer(app) as server:
        yield Artifactory(str(server.make_url(f"/artifactory/{repository}")), files, properties)


def _authorized(request: web.Request) -> None:
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        raise web.HTTPUnauthorized(text='{"errors": [{"status": 401, "message": "Bad credentials"}]}')


def _checksums(body: bytes) -> dict[str, str]:
    sha1 = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    return {"sha1": sha1, "sha256": hashlib.sha256(body).hexdigest()}
