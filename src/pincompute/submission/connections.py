"""Connections: who opens one and says nothing gives way to whoever comes after them, and whoever is known to have no
room is answered at the doorstep."""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from pincompute.submission.doorstep import Doorstep, knock_in

MOST = 4_000
"""At one time, whoever opened them; twice what may be open for streams."""
SILENT_SECONDS = 100.0
"""Within which the head of a request has come, after the connection or what was asked before; what stands before a
desk keeps its own for less."""
HANDSHAKE_SECONDS = 10.0
BACKLOG = 1_024
"""Connections that wait to be taken up: whom the kernel has no room for tries again ever later."""


def _is_ours(record: logging.LogRecord) -> bool:
    """What cannot be read as a request is told to whoever sent it, and to nobody else: it may be sent for ever, and
    hold a token."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_ours)


class _On(Enum):
    """What of a connection the library has not answered."""

    NOTHING = auto()
    ONE = auto()
    """Request, whole."""
    WHO_KNOWS = auto()
    """From now on everything is for the library, which reads whatever can be read."""


class Visitor(asyncio.Protocol):
    """A connection, before the library: what it is told here is never the answer to anything else."""

    def __init__(self, library: asyncio.Protocol, doorstep: Doorstep, there: dict[object, Visitor]) -> None:
        self.library = library
        self.speaks = False
        """Something is being done for it."""
        self._doorstep = doorstep
        self._there = there
        self._transport: asyncio.Transport | None = None
        self._on = _On.NOTHING
        self._listens = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._there[self.library] = self
        if transport.get_extra_info("peercert"):
            # Who it is does not stand in what it says.
            self._on = _On.WHO_KNOWS
        self.library.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        knock = knock_in(data) if self._on is _On.NOTHING else None
        # Whoever does not listen is not told more and more.
        if knock and self._listens and self._transport and (told := self._doorstep.answer(knock)):
            self._transport.write(told)
            return
        self._on = _On.ONE if knock else _On.WHO_KNOWS
        self.library.data_received(data)

    def leave(self) -> None:
        self._there.pop(self.library, None)
        if self._transport:
            self._transport.close()

    def answered(self) -> None:
        """To its end."""
        if self._on is _On.ONE:
            self._on = _On.NOTHING

    def pause_writing(self) -> None:
        self._listens = False
        self.library.pause_writing()

    def resume_writing(self) -> None:
        self._listens = True
        self.library.resume_writing()

    def eof_received(self) -> bool | None:
        return self.library.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._there.pop(self.library, None)
        self.library.connection_lost(exc)


DOORSTEP: web.AppKey[Doorstep] = web.AppKey("doorstep")
VISITORS: web.AppKey[dict[object, Visitor]] = web.AppKey("visitors")
"""As they came, by who speaks to them."""


def receive(app: web.Application, doorstep: Doorstep) -> None:
    """From whoever comes."""
    app[DOORSTEP] = doorstep
    app[VISITORS] = {}


@web.middleware
async def heard(request: web.Request, handler: Handler) -> web.StreamResponse:
    visitor = request.app[VISITORS].get(request.protocol)
    if visitor is None:
        # It has left, or was let in by nobody, as in a test.
        return await handler(request)
    visitor.speaks = True
    try:
        response = await handler(request)
        if type(response) is web.Response:
            # Whoever has left has left.
            with suppress(ConnectionError):
                await response.prepare(request)
                await response.write_eof()
                visitor.answered()
    finally:
        visitor.speaks = False
    return response


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

    there = app[VISITORS]

    def opened() -> asyncio.BaseProtocol:
        if len(there) >= bound:
            # Who has said nothing for longest; whoever means to say something has done so by the time it is they.
            silent = next((each for each in there.values() if not each.speaks), None)
            if silent:
                silent.leave()
        return Visitor(server(), app[DOORSTEP], there)

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
