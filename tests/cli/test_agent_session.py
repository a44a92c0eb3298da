"""Sessions with agents of nodes: a ticket of the desk, then a connection that verifies the agent, or another way."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pincompute.api.debug import DebugRequest, DebugTicket
from pincompute.api.exec_request import ExecRequest
from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    CLUSTER_UNREACHABLE,
    CONTAINER_GONE,
    DEBUG_AGENT_UNAVAILABLE,
    FORBIDDEN,
    REPLICA_UNKNOWN,
)
from pincompute.cli.agent_session import AgentUnavailable
from pincompute.cli.desk_client import open_desk_client

WORKLOAD = "/v1/projects/me/workloads/web"
REQUEST = DebugRequest(command=("sh",))
Handle = Callable[[web.Request, web.WebSocketResponse], Awaitable[None]]


async def say_hello(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(b"\1hello")
    await socket.send_bytes(b'\3{"status": "Success"}')


class Far(NamedTuple):
    """A desk and an agent."""

    context: Context
    revoke: asyncio.Event
    left: asyncio.Event
    """The client has closed its connection to the desk."""


@asynccontextmanager
async def serve_desk_and_agent(
    folder: Path, handle: Handle = say_hello, *, trusted: bool = True, refusal: Problem | None = None
) -> AsyncGenerator[Far]:
    authority, other = Authority(folder / "ca"), Authority(folder / "other")
    for each in (authority, other):
        each.establish()
        each.issue("agent", hosts=("127.0.0.1",))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.certificate("agent"), authority.key("agent"))
    revoke, left = asyncio.Event(), asyncio.Event()

    async def session(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer granted"
        assert msgspec.json.decode(request.query["request"], type=DebugRequest) == REQUEST
        if refusal:
            return web.json_response(Refused(refusal).json(), status=refusal.reason.http_status)
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await handle(request, socket)
        return socket

    async def ticket(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        found = DebugTicket(
            url=str(agent.make_url("")).rstrip("/"), authority=(authority if trusted else other).bundle.read_text(),
            grant="granted", request=msgspec.json.encode(REQUEST).decode(), node="n", replica="web-1", container="web",
        )  # fmt: skip
        await socket.send_bytes(msgspec.json.encode(found))
        closed, revoked = asyncio.ensure_future(socket.receive()), asyncio.ensure_future(revoke.wait())
        try:
            await asyncio.wait([closed, revoked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # The server cancels this when the client has disconnected.
            for future in (closed, revoked):
                future.cancel()
            await asyncio.gather(closed, revoked, return_exceptions=True)
            left.set()
        if revoke.is_set():
            await socket.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION)
        return socket

    async def programs(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_bytes(b"\1by the API server")
        await socket.send_bytes(b'\3{"status": "Success"}')
        await socket.close()
        return socket

    agent_app, desk_app = web.Application(), web.Application()
    agent_app.add_routes([web.get("/v1/sessions", session)])
    desk_app.add_routes([web.get(f"{WORKLOAD}/sessions", ticket), web.get(f"{WORKLOAD}/programs", programs)])
    agent = TestServer(agent_app, scheme="https")
    await agent.start_server(ssl=tls)
    async with TestServer(desk_app) as desk:
        try:
            yield Far(Context(name="far", desk=str(desk.make_url("/")), token="t", kubeconfig=""), revoke, left)
        finally:
            await agent.close()


async def output_of(context: Context) -> bytes:
    async with open_desk_client(context) as client, client.open_session("me", "web", REQUEST) as stream:
        output = b"".join([chunk.data async for chunk in stream.output()])
        assert stream.exit_code == 0
    return output


async def shell_output(context: Context) -> bytes:
    async with open_desk_client(context) as client, client.exec("me", "web", ExecRequest(command=("sh",))) as stream:
        return b"".join([chunk.data async for chunk in stream.output()])


async def test_goes_to_the_agent_of_the_ticket(tmp_path: Path) -> None:
    async with serve_desk_and_agent(tmp_path) as far:
        assert await output_of(far.context) == b"hello"
        assert await shell_output(far.context) == b"hello"
        async with asyncio.timeout(60):
            await far.left.wait()


async def test_shell_goes_by_the_api_server_if_the_agent_is_not_the_platforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serve_desk_and_agent(tmp_path, trusted=False) as far:
        with pytest.raises(AgentUnavailable, match="the agent of n does not answer"):
            await output_of(far.context)
        assert await shell_output(far.context) == b"by the API server"
    assert "through the API server" in capsys.readouterr().err


async def test_shell_goes_by_the_api_server_if_the_agent_is_busy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = Problem(DEBUG_AGENT_UNAVAILABLE, "the node has 128 sessions open")
    async with serve_desk_and_agent(tmp_path, refusal=busy) as far:
        assert await shell_output(far.context) == b"by the API server"
    assert "the node has 128 sessions open: through the API server" in capsys.readouterr().err


async def test_refusals_of_the_agent_are_final(tmp_path: Path) -> None:
    gone = Problem(CONTAINER_GONE, "the container has ended")
    async with serve_desk_and_agent(tmp_path, refusal=gone) as far:
        with pytest.raises(Refused) as refused:
            await shell_output(far.context)
    assert refused.value.problems == (gone,)
    assert gone.reason is not REPLICA_UNKNOWN


async def test_session_ends_when_the_desk_withdraws_access(tmp_path: Path) -> None:
    async def wait_for_client(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\1hello")
        far.revoke.set()
        await socket.receive(timeout=60)

    async with serve_desk_and_agent(tmp_path, wait_for_client) as far:
        with pytest.raises(Refused, match="your permission was withdrawn") as refused:
            await output_of(far.context)
    assert refused.value.problems[0].reason is FORBIDDEN


async def test_session_that_the_agent_ends_says_so(tmp_path: Path) -> None:
    async def end(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION)

    async with serve_desk_and_agent(tmp_path, end) as far:
        with pytest.raises(Refused, match="was ended"):
            await output_of(far.context)


async def test_killed_agent_is_an_error_and_no_exit_code(tmp_path: Path) -> None:
    async def vanish(request: web.Request, _: web.WebSocketResponse) -> None:
        assert request.transport is not None
        request.transport.abort()

    async with serve_desk_and_agent(tmp_path, vanish) as far:
        with pytest.raises(Refused, match="closed before the program had ended") as refused:
            await output_of(far.context)
    assert refused.value.problems[0].reason is CLUSTER_UNREACHABLE
