"""An HTTP server with canned responses, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.transport import ClientLimits

Responder = Callable[[web.Request], Awaitable[web.StreamResponse]]

LONG_LIMITS = ClientLimits(request_timeout_s=60, watch_timeout_s=0, watch_grace_s=60)
SHORT_LIMITS = ClientLimits(request_timeout_s=1, watch_timeout_s=0, watch_grace_s=1)
"""For tests in which the client is meant to time out."""


@asynccontextmanager
async def fake_api_server(
    *responders: Responder, limits: ClientLimits = LONG_LIMITS, **access_options: Any
) -> AsyncGenerator[tuple[Client, list[web.Request]]]:
    """Yields a client and the received requests. Responses are given in turn, the last one for all further requests."""
    requests: list[web.Request] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        return await responders[min(len(requests), len(responders)) - 1](request)

    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", respond)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address, port = runner.addresses[0][:2]
    async with Client(Access(f"http://{address}:{port}", **access_options), agent="test", limits=limits) as client:
        yield client, requests
    await runner.cleanup()


def respond_with(status: int, text: str, **headers: str) -> Responder:
    """A responder that always gives this response."""

    async def respond(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers=headers)

    return respond
