"""A server of HTTP that answers what a test wants, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.transport import Limits

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

PATIENT = Limits(whole=60, watch=0, silence=60)
QUICK = Limits(whole=1, watch=0, silence=1)
"""For who is meant to be waited for in vain."""


@asynccontextmanager
async def pretending(
    *answers: Answer, limits: Limits = PATIENT, **more: Any
) -> AsyncGenerator[tuple[Client, list[web.Request]]]:
    """A client of a server that gives these answers in turn, the last one for ever; and what it was asked."""
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return await answers[min(len(asked), len(answers)) - 1](request)

    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address, port = runner.addresses[0][:2]
    async with Client(Access(f"http://{address}:{port}", **more), agent="test", limits=limits) as client:
        yield client, asked
    await runner.cleanup()


def says(status: int, text: str, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers=headers)

    return answer
