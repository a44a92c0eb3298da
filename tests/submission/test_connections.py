"""Whoever opens connections and says nothing keeps nobody else out, and none of them for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from lines import Line, line
from pincompute.submission import connections
from pincompute.submission.connections import heard, listening, receive
from pincompute.submission.doorstep import Doorstep

MOST = 8
ASKS = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n"


def app(ends: asyncio.Event) -> web.Application:
    async def stays(_: web.Request) -> web.Response:
        await ends.wait()
        return web.Response(text="stayed")

    async def answers(_: web.Request) -> web.Response:
        return web.Response(text="answered")

    made = web.Application(middlewares=[heard])
    receive(made, Doorstep())
    made.add_routes([web.get("/", answers), web.get("/stays", stays)])
    return made


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization sesame\r\n\r\n",
        b"GET /sesame HTTP/9 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: sesame\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-A: " + b"sesame" * 10_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_told_to_who_sent_it_and_stands_in_no_log(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(60), listening(app(asyncio.Event()), "127.0.0.1", 0) as port, line(port, said) as sent:
        assert await sent.reader.readline() == b"HTTP/1.0 400 Bad Request\r\n"
        assert caplog.text == ""


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "])
async def test_who_says_nothing_gives_way_to_who_does(said: bytes) -> None:
    ends = asyncio.Event()
    async with asyncio.timeout(60), listening(app(ends), "127.0.0.1", 0, most=MOST) as port, AsyncExitStack() as stack:
        asked = await stack.enter_async_context(line(port, ASKS % b"stays"))
        silent: list[Line] = []
        for _ in range(3 * MOST):
            silent.append(await stack.enter_async_context(line(port, said)))
            async with line(port) as other:
                # By then those before it were seen, too.
                other.writer.write(ASKS % b"")
                assert await other.reader.readline() == b"HTTP/1.1 200 OK\r\n"
        for each in silent[: 2 * MOST]:
            assert await each.reader.read() == b""
        # Of who is being answered nothing is taken, however long ago they came.
        ends.set()
        assert await asked.reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_nobody_is_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.1)
    async with asyncio.timeout(60), listening(app(asyncio.Event()), "127.0.0.1", 0) as port:
        for said in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "):
            async with line(port, said) as silent:
                assert await silent.reader.read() == b""
        async with line(port, ASKS % b"") as asked:
            assert (await asked.reader.read()).endswith(b"answered")
