"""Idle connections must not keep other clients out, and active ones must not be closed for them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from pincompute.desk.limits import connections
from pincompute.desk.limits.connections import ACTIVE_CONNECTIONS, serve_app, track_active_connections
from raw_http import RawConnection, raw_connection

LIMIT = 8
GET = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n"


def app(finish: asyncio.Event) -> web.Application:
    async def wait(_: web.Request) -> web.Response:
        await finish.wait()
        return web.Response(text="waited")

    async def respond(_: web.Request) -> web.Response:
        return web.Response(text="responded")

    made = web.Application(middlewares=[track_active_connections])
    made[ACTIVE_CONNECTIONS] = set()
    made.add_routes([web.get("/", respond), web.get("/wait", wait)])
    return made


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization sesame\r\n\r\n",
        b"GET /sesame HTTP/9 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: sesame\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-A: " + b"sesame" * 10_000 + b"\r\n\r\n",
    ],
)
async def test_malformed_request_is_answered_with_400_and_not_logged(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        asyncio.timeout(60),
        serve_app(app(asyncio.Event()), "127.0.0.1", 0) as port,
        raw_connection(port, sent) as connection,
    ):
        assert await connection.reader.readline() == b"HTTP/1.0 400 Bad Request\r\n"
        assert caplog.text == ""


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "])
async def test_oldest_idle_connection_is_closed_for_a_new_one(sent: bytes) -> None:
    finish = asyncio.Event()
    async with (
        asyncio.timeout(60),
        serve_app(app(finish), "127.0.0.1", 0, max_connections=LIMIT) as port,
        AsyncExitStack() as stack,
    ):
        active = await stack.enter_async_context(raw_connection(port, GET % b"wait"))
        idle: list[RawConnection] = []
        for _ in range(3 * LIMIT):
            idle.append(await stack.enter_async_context(raw_connection(port, sent)))
            async with raw_connection(port) as other:
                # A response to a later connection shows that the idle one was accepted.
                other.writer.write(GET % b"")
                assert await other.reader.readline() == b"HTTP/1.1 200 OK\r\n"
        for connection in idle[: 2 * LIMIT]:
            assert await connection.reader.read() == b""
        # The active connection is older than all of them, and still open.
        finish.set()
        assert await active.reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_burst_of_connections_exceeds_the_limit_only_until_the_next_one() -> None:
    async with (
        asyncio.timeout(60),
        serve_app(app(asyncio.Event()), "127.0.0.1", 0, max_connections=LIMIT) as port,
        AsyncExitStack() as stack,
    ):
        idle = [await stack.enter_async_context(raw_connection(port, b"GET / HT")) for _ in range(LIMIT)]
        async with raw_connection(port, GET % b"") as other:
            assert await other.reader.readline() == b"HTTP/1.1 200 OK\r\n"
        newer = await asyncio.gather(
            *(stack.enter_async_context(raw_connection(port, b"GET / HT")) for _ in range(LIMIT))
        )
        async with raw_connection(port, GET % b"") as other:
            assert await other.reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert [await each.reader.read() for each in idle] == [b""] * LIMIT
        assert len(newer) == LIMIT


async def test_idle_connection_is_closed_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_TIMEOUT_S", 0.1)
    async with asyncio.timeout(60), serve_app(app(asyncio.Event()), "127.0.0.1", 0) as port:
        for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "):
            async with raw_connection(port, sent) as idle:
                assert await idle.reader.read() == b""
        async with raw_connection(port, GET % b"") as active:
            assert (await active.reader.read()).endswith(b"responded")
