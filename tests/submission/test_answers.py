"""Streams of the desk: who leaves is let go of without a word, and what is being changed is changed to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from pincompute.submission.answers import json_of, stream
from pincompute.submission.server import carried_through, runner


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    running = runner(app)
    await running.setup()
    try:
        await web.TCPSite(running, "127.0.0.1", 0).start()
        host, port = running.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await running.cleanup()


@pytest.mark.parametrize("when", ["nothing is new", "much is new", "a word is on its way"])
async def test_who_leaves_is_let_go_of(when: str, caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def values(request: web.Request) -> AsyncGenerator[object]:
        try:
            yield "first"
            while True:
                await (asyncio.Event().wait() if when == "nothing is new" else asyncio.sleep(0))
                if when == "a word is on its way" and request.transport:
                    # The connection is gone, and nobody was told yet.
                    request.transport.close()
                yield "more"
        finally:
            ended.set()

    async def follow(request: web.Request) -> web.StreamResponse:
        return await stream(request, values(request))

    app = web.Application()
    app.add_routes([web.get("/", follow)])
    async with served(app) as address, aiohttp.ClientSession() as session:
        answer = await session.get(address)
        assert await answer.content.readline() == b'"first"\n'
        answer.close()
        async with asyncio.timeout(10):
            await ended.wait()
    assert caplog.records == []


async def test_what_is_being_changed_is_changed_to_its_end() -> None:
    began, goes_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def change(_: web.Request) -> web.Response:
        began.set()
        await goes_on.wait()
        done.set()
        return json_of("done")

    app = web.Application(middlewares=[carried_through])
    app.add_routes([web.post("/", change)])
    async with served(app) as address, aiohttp.ClientSession() as session:
        asked = asyncio.create_task(session.post(address))
        await began.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        # Its connection is closed by now, and the desk has heard of it before it goes on.
        async with session.get(f"{address}/nothing") as answer:
            assert answer.status == 404
        goes_on.set()
        async with asyncio.timeout(10):
            await done.wait()
