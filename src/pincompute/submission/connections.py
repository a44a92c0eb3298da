"""Connections: who opens one and says nothing gives way to whoever comes after them."""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

MOST = 4_000
"""At one time, whoever opened them; twice what may be open for streams."""
SILENT_SECONDS = 100.0
"""Within which the head of a request has come, after the connection or what was asked before; what stands before a
desk keeps its own for less."""
HANDSHAKE_SECONDS = 10.0
BACKLOG = 1_024
"""Connections that wait to be taken up: whom the kernel has no room for tries again ever later."""
SPEAKING: web.AppKey[set[Any]] = web.AppKey("speaking")
"""Those of which a request is being answered."""


def _is_ours(record: logging.LogRecord) -> bool:
    """What cannot be read as a request is told to whoever sent it, and to nobody else: it may be sent for ever, and
    hold a token."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_ours)


@web.middleware
async def heard(request: web.Request, handler: Handler) -> web.StreamResponse:
    speaking = request.app[SPEAKING]
    speaking.add(request.protocol)
    try:
        return await handler(request)
    finally:
        speaking.discard(request.protocol)


def runner(app: web.Application) -> web.AppRunner:
    """Who only looks on is let go of when they leave; streams would otherwise keep the process from ending, too."""
    return web.AppRunner(
        app,
        access_log=None,
        logger=_log,
        shutdown_timeout=1.0,
        handler_cancellation=True,
        keepalive_timeout=SILENT_SECONDS,
    )


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, tls: ssl.SSLContext | None = None, most: int = 0
) -> AsyncGenerator[int]:
    """The port on which it is asked meanwhile."""
    bound, running = most or _affordable(), runner(app)
    await running.setup()
    server = running.server
    assert server is not None

    def opened() -> asyncio.BaseProtocol:
        there = [each for each in server.connections if each.transport is not None]
        if len(there) >= bound:
            # Who has said nothing for longest; whoever means to say something has done so by the time it is they.
            silent = next((each for each in there if each not in app[SPEAKING]), None)
            if silent:
                silent.force_close()
        return server()

    begun = asyncio.get_running_loop().create_server(
        opened, host, port, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=HANDSHAKE_SECONDS if tls else None
    )
    try:
        site = await begun
        try:
            yield site.sockets[0].getsockname()[1]
        finally:
            site.close()
    finally:
        await running.cleanup()


def _affordable() -> int:
    """The other half of what the process may have open is for those whom it asks itself."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST, allowed // 2)
