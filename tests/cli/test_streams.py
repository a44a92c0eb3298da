"""Streams of a desk: one JSON document a line, until the client closes the stream."""

from __future__ import annotations

from contextlib import aclosing

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pincompute.base.platform_context import Context
from pincompute.base.problem import Refused
from pincompute.cli.desk_client import DeskClient
from pincompute.cli.http_client import HttpClient, HttpResponse


class CountingClient(HttpClient):
    """Counts the responses that are released."""

    released = 0

    async def release(self, response: HttpResponse) -> None:
        self.released += 1
        await super().release(response)


async def stream_changes(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for chunk in (b'{"deleted": ["we', b'b"]}\n{"deleted": []}\n', b'{"deleted": 1}\n', b'{"deleted": ["unread"]}'):
        await response.write(chunk)
    return response


async def test_yields_documents_as_they_come_and_releases_the_response_on_close() -> None:
    app = web.Application()
    app.add_routes([web.get("/v1/projects/me/changes", stream_changes)])
    async with TestServer(app) as server, CountingClient(str(server.make_url("/")), {}) as http:
        context = Context(name="far", desk=str(server.make_url("/")), token="", kubeconfig="")
        client = DeskClient(http, context, {})
        async with aclosing(client.watch("me")) as changes:
            assert [(await anext(changes)).deleted, (await anext(changes)).deleted] == [["web"], []]
            assert http.released == 0
        assert http.released == 1
        async with aclosing(client.watch("me")) as changes:
            with pytest.raises(Refused, match="broke off"):
                [each async for each in changes]
        assert http.released == 2
