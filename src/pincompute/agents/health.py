"""Health page of an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from pincompute.agents.process import serve_http

STALE_AFTER_S = 300.0
"""An agent without a message of the API server for this long, bookmarks included, is unhealthy: its data is stale."""


@asynccontextmanager
async def serve_health(listen: str, staleness_s: Callable[[], float]) -> AsyncGenerator[None]:
    """Serves `/healthz` while the block runs. `staleness_s` returns the seconds since the API server was heard."""

    async def healthz(_: web.Request) -> web.Response:
        seconds = staleness_s()
        text = f"last message of the API server {seconds:.0f} s ago\n"
        return web.Response(text=text, status=200 if seconds < STALE_AFTER_S else 503)

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    async with serve_http(listen, application):
        yield
