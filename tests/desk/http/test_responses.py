"""Streams end silently when the client disconnects, and with a problem when its access is revoked.

Writes are completed in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import UNAUTHENTICATED
from pincompute.desk.http.auth import ACCESS_REVOKED
from pincompute.desk.http.exec_routes import relay_websocket
from pincompute.desk.http.responses import json_response, stream_response
from pincompute.desk.http.server import problem_middleware, shield_writes
from pincompute.desk.limits.connections import app_runner


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    running = app_runner(app)
    await running.setup()
    try:
        await web.TCPSite(running, "127.0.0.1", 0).start()
        host, port = running.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await running.cleanup()


NO_LONGER = Problem(UNAUTHENTICATED, "your login has expired", next="pin login")


def lasting(ended: asyncio.Event) -> Middleware:
    """Revokes access when the event is set."""

    async def lapse() -> None:
        await ended.wait()
        raise Refused(NO_LONGER)

    @web.middleware
    async def allowed(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[ACCESS_REVOKED] = lapse
        return await handler(request)

    return allowed


@pytest.mark.parametrize("when", ["nothing is new", "much is new", "a word is on its way"])
async def test_stream_ends_when_the_client_disconnects(when: str, caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def values(request: web.Request) -> AsyncGenerator[object]:
        try:
            yield "first"
            while True:
                await (asyncio.Event().wait() if when == "nothing is new" else asyncio.sleep(0))
                if when == "a word is on its way" and request.transport:
                    # The connection is closed, and the handler does not know yet.
                    request.transport.close()
                yield "more"
        finally:
            ended.set()

    async def follow(request: web.Request) -> web.StreamResponse:
        return await stream_response(request, values(request))

    app = web.Application(middlewares=[lasting(asyncio.Event())])
    app.add_routes([web.get("/", follow)])
    async with served(app) as address, aiohttp.ClientSession() as session:
        answer = await session.get(address)
        assert await answer.content.readline() == b'"first"\n'
        answer.close()
        async with asyncio.timeout(60):
            await ended.wait()
    assert caplog.records == []


async def test_stream_ends_with_a_problem_when_access_is_revoked() -> None:
    ended, left = asyncio.Event(), asyncio.Event()

    async def values() -> AsyncGenerator[object]:
        try:
            yield "first"
            await asyncio.Event().wait()
        finally:
            left.set()

    async def follow(request: web.Request) -> web.StreamResponse:
        return await stream_response(request, values())

    app = web.Application(middlewares=[lasting(ended)])
    app.add_routes([web.get("/", follow)])
    async with served(app) as address, aiohttp.ClientSession() as session, session.get(address) as answer:
        assert await answer.content.readline() == b'"first"\n'
        ended.set()
        async with asyncio.timeout(60):
            told = msgspec.json.decode(await answer.content.read())
            await left.wait()
        assert told["errors"][0] == NO_LONGER.json()


async def test_stream_without_a_value_ends_as_an_error_response() -> None:
    ended, left = asyncio.Event(), asyncio.Event()

    async def values() -> AsyncGenerator[object]:
        try:
            await asyncio.Event().wait()
            yield "never"
        finally:
            left.set()

    async def follow(request: web.Request) -> web.StreamResponse:
        ended.set()
        return await stream_response(request, values())

    app = web.Application(middlewares=[problem_middleware, lasting(ended)])
    app.add_routes([web.get("/", follow)])
    async with served(app) as address, aiohttp.ClientSession() as session, session.get(address) as answer:
        async with asyncio.timeout(60):
            told = msgspec.json.decode(await answer.content.read())
            await left.wait()
        assert (answer.status, told["errors"][0]) == (401, NO_LONGER.json())


async def test_websocket_is_closed_when_access_is_revoked() -> None:
    ended, let_go = asyncio.Event(), asyncio.Event()

    async def copy(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_bytes(message.data)
        let_go.set()
        return socket

    async def enter(request: web.Request) -> web.StreamResponse:
        async with aiohttp.ClientSession() as within, within.ws_connect(f"http://{request.host}/copy") as line:
            return await relay_websocket(request, line)

    app = web.Application(middlewares=[lasting(ended)])
    app.add_routes([web.get("/copy", copy), web.get("/", enter)])
    async with served(app) as address, aiohttp.ClientSession() as session, session.ws_connect(address) as socket:
        await socket.send_bytes(b"\0said")
        async with asyncio.timeout(60):
            assert await socket.receive_bytes() == b"\0said"
            ended.set()
            assert (await socket.receive()).data == aiohttp.WSCloseCode.POLICY_VIOLATION
            await let_go.wait()


async def test_write_is_completed_after_the_client_disconnects() -> None:
    began, goes_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def change(_: web.Request) -> web.Response:
        began.set()
        await goes_on.wait()
        done.set()
        return json_response("done")

    app = web.Application(middlewares=[shield_writes])
    app.add_routes([web.post("/", change)])
    async with served(app) as address, aiohttp.ClientSession() as session:
        asked = asyncio.create_task(session.post(address))
        await began.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        # By then the server knows that the connection of the write is closed.
        async with session.get(f"{address}/nothing") as answer:
            assert answer.status == 404
        goes_on.set()
        async with asyncio.timeout(60):
            await done.wait()
