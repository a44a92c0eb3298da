"""What a desk tells on and on: a document a line, until whoever listens has enough of it."""

from __future__ import annotations

from contextlib import aclosing

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pincompute.base.context import Context
from pincompute.base.problem import Refused
from pincompute.cli.asking import Answer, Asker
from pincompute.cli.desk import DeskPort


class Watched(Asker):
    """It is seen whom it has let go of."""

    left = 0

    async def let_go(self, answer: Answer) -> None:
        self.left += 1
        await super().let_go(answer)


async def told(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for line in (b'{"gone": ["we', b'b"]}\n{"gone": []}\n', b'{"gone": 1}\n', b'{"gone": ["never said"]}'):
        await response.write(line)
    return response


async def test_lines_come_as_what_they_say_and_whoever_closes_a_stream_has_hung_up() -> None:
    app = web.Application()
    app.add_routes([web.get("/v1/projects/me/changes", told)])
    async with TestServer(app) as server, Watched(str(server.make_url("/")), {}) as asker:
        context = Context(name="far", desk=str(server.make_url("/")), token="", kubeconfig="")
        port = DeskPort(asker, context, {})
        async with aclosing(port.watch("me")) as sights:
            assert [(await anext(sights)).gone, (await anext(sights)).gone] == [["web"], []]
            assert asker.left == 0
        assert asker.left == 1
        async with aclosing(port.watch("me")) as sights:
            with pytest.raises(Refused, match="broke off"):
                [each async for each in sights]
        assert asker.left == 2
