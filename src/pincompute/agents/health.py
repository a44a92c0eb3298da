"""How an agent says that it is well: one page on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from pincompute.agents.process import answering

STALE = 300.0
"""Seconds without a word from the API server, bookmarks included, after which what is known is not to be trusted."""


@asynccontextmanager
async def serve(listen: str, age: Callable[[], float]) -> AsyncGenerator[None]:
    """For as long as the block runs; `age` tells how long ago the API server was heard."""

    async def healthz(_: web.Request) -> web.Response:
        heard = age()
        return web.Response(text=f"heard {heard:.0f} s ago\n", status=200 if heard < STALE else 503)

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    async with answering(listen, application):
        yield
