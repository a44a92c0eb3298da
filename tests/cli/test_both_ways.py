"""Into a copy by a desk: by its own words where it says no, and told when it ends what it has let in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pincompute.api.entering import Inside
from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import COPY_UNKNOWN, DESK_UNREACHABLE, NOT_ALLOWED
from pincompute.cli.desk import desk_port

SAID = Problem(COPY_UNKNOWN, "no copy 'x' of web runs")


@asynccontextmanager
async def desk(*answers: web.Response | str) -> AsyncGenerator[Context]:
    """Answers one after the other; a word is printed by the program, which then ends as nobody may."""
    left = list(answers)

    async def programs(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer t"
        assert request.path == "/v1/projects/me/workloads/a b/programs"
        answer = left.pop(0)
        if isinstance(answer, web.Response):
            return answer
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_bytes(b"\1" + answer.encode())
        await socket.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION)
        return socket

    app = web.Application()
    app.add_routes([web.get("/v1/projects/{project}/workloads/{name}/programs", programs)])
    async with TestServer(app) as server:
        yield Context(name="far", desk=str(server.make_url("/")), token="t", kubeconfig="")
    assert left == []


async def printed(context: Context) -> list[bytes]:
    async with desk_port(context) as port, port.enter("me", "a b", Inside()) as execution:
        return [chunk.data async for chunk in execution.output()]


async def test_a_desk_that_says_no_says_why() -> None:
    said = Refused(SAID).json()
    async with desk(web.json_response(said, status=404)) as context:
        with pytest.raises(Refused) as refused:
            await printed(context)
    assert refused.value.problems == (SAID,)


async def test_a_busy_desk_is_asked_again_and_may_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    busy = web.Response(status=429, headers={"Retry-After": "0"})
    async with desk(busy, "hello") as context:
        with pytest.raises(Refused, match="the desk has ended this") as refused:
            await printed(context)
    assert refused.value.problems[0].reason is NOT_ALLOWED
    assert "the desk is busy" in capsys.readouterr().err


async def test_nobody_is_there() -> None:
    async with desk() as context:
        pass
    with pytest.raises(Refused, match="does not answer") as refused:
        await printed(context)
    assert refused.value.problems[0].reason is DESK_UNREACHABLE
