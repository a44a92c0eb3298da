"""Bounds open connections: at the limit, the oldest idle connection is closed for a new one."""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

MAX_CONNECTIONS = 4_000
"""Twice the number of streams that may be open, so that idle connections cannot take the place of streams."""
IDLE_TIMEOUT_S = 100.0
"""Time for a request head to arrive after the connection was opened or the previous request ended. Longer than the
keep-alive timeout of common proxies, so that the proxy closes first and never sends a request into a closing socket."""
TLS_HANDSHAKE_TIMEOUT_S = 10.0
LISTEN_BACKLOG = 1_024
"""Connections that wait in the kernel. A client that finds it full retransmits its SYN after ever longer delays."""


def _is_server_error(record: logging.LogRecord) -> bool:
    """Drops log records of malformed requests.

    The client gets a 400. A log line for each would let anyone fill the log, possibly with tokens.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_server_error)

ACTIVE_CONNECTIONS: web.AppKey[set[object]] = web.AppKey("active_connections")
"""Connections (aiohttp's protocol objects) on which a request is being handled."""


@web.middleware
async def track_active_connections(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Marks the connection as active while a request is handled: an active connection is never closed for another."""
    active, connection = request.app[ACTIVE_CONNECTIONS], request.protocol
    active.add(connection)
    try:
        return await handler(request)
    finally:
        active.discard(connection)


def app_runner(app: web.Application) -> web.AppRunner:
    """Cancels handlers of closed connections; streams would otherwise run on, and keep the process from ending."""
    return web.AppRunner(
        app,
        access_log=None,
        logger=_log,
        shutdown_timeout=1.0,
        handler_cancellation=True,
        keepalive_timeout=IDLE_TIMEOUT_S,
    )


@asynccontextmanager
async def serve_app(
    app: web.Application, host: str, port: int, tls: ssl.SSLContext | None = None, max_connections: int = 0
) -> AsyncGenerator[int]:
    """Serves an application while entered; yields the port."""
    limit, running = max_connections or _default_max_connections(), app_runner(app)
    await running.setup()
    server = running.server
    assert server is not None

    def accept_connection() -> asyncio.BaseProtocol:
        _close_idle_connections(server, app[ACTIVE_CONNECTIONS], limit)
        return server()

    starting = asyncio.get_running_loop().create_server(
        accept_connection,
        host,
        port,
        backlog=LISTEN_BACKLOG,
        ssl=tls,
        ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S if tls else None,
    )
    try:
        site = await starting
        try:
            yield site.sockets[0].getsockname()[1]
        finally:
            site.close()
    finally:
        await running.cleanup()


def _close_idle_connections(server: web.Server, active: set[object], limit: int) -> None:
    """Makes room for one more connection by closing the oldest idle ones.

    Connections that are accepted in one burst are not in the server's list yet, so there may be several too many.
    """
    if len(server.connections) < limit:
        return
    # A closed connection stays in the list until its handler has ended.
    opened = [each for each in server.connections if each.transport and not each.transport.is_closing()]
    excess = max(0, len(opened) - limit + 1)
    for connection in [each for each in opened if each not in active][:excess]:
        if connection.transport:
            connection.transport.close()


def _default_max_connections() -> int:
    """At most half of the file descriptors: the other half is for connections to the cluster, database and stores."""
    max_descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CONNECTIONS, max_descriptors // 2)
