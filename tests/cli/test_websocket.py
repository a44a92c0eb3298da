"""WebSockets to a desk: rejected handshakes, retries and sessions that the desk closes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pincompute.api.exec_request import ExecRequest
from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_MISSING, DESK_UNREACHABLE, FORBIDDEN, REPLICA_UNKNOWN
from pincompute.cli.desk_client import open_desk_client

REJECTION = Problem(REPLICA_UNKNOWN, "no replica 'x' of web runs")


@asynccontextmanager
async def serve_exec(*answers: web.Response | str) -> AsyncGenerator[Context]:
    """Give one answer after the other; a string is the program's output, after which the desk revokes access."""
    remaining = list(answers)

    async def run_program(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer t"
        assert request.path == "/v1/projects/me/workloads/a b/programs"
        answer = remaining.pop(0)
        if isinstance(answer, web.Response):
            return answer
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_bytes(b"\1" + answer.encode())
        await socket.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION)
        return socket

    async def refuse_session(_: web.Request) -> web.Response:
        return web.json_response(Refused(Problem(DEBUG_AGENT_MISSING, "no agents")).json(), status=409)

    app = web.Application()
    workload = "/v1/projects/{project}/workloads/{name}"
    app.add_routes([web.get(f"{workload}/programs", run_program), web.get(f"{workload}/sessions", refuse_session)])
    async with TestServer(app) as server:
        yield Context(name="far", desk=str(server.make_url("/")), token="t", kubeconfig="")
    assert remaining == []


async def output_of(context: Context) -> list[bytes]:
    async with open_desk_client(context) as client, client.exec("me", "a b", ExecRequest()) as stream:
        return [chunk.data async for chunk in stream.output()]


async def test_rejected_handshake_raises_the_problem_of_the_desk() -> None:
    body = Refused(REJECTION).json()
    async with serve_exec(web.json_response(body, status=404)) as context:
        with pytest.raises(Refused) as refused:
            await output_of(context)
    assert refused.value.problems == (REJECTION,)


async def test_retries_a_busy_desk_and_reports_a_closed_session(capsys: pytest.CaptureFixture[str]) -> None:
    busy = web.Response(status=429, headers={"Retry-After": "0"})
    async with serve_exec(busy, "hello") as context:
        with pytest.raises(Refused, match="the desk closed the session") as refused:
            await output_of(context)
    assert refused.value.problems[0].reason is FORBIDDEN
    assert "the desk is busy" in capsys.readouterr().err


async def test_reports_an_unreachable_desk() -> None:
    async with serve_exec() as context:
        pass
    with pytest.raises(Refused, match="does not answer") as refused:
        await output_of(context)
    assert refused.value.problems[0].reason is DESK_UNREACHABLE
