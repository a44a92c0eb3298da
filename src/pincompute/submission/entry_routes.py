"""The desk's doors into copies: who goes in is on record, and what both sides say is carried as it is."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from pincompute.api.entering import Inside
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import COPY_UNKNOWN, DOCUMENT_INVALID, UPGRADE_NEEDED, WORKLOAD_UNKNOWN
from pincompute.base.ways import until_either
from pincompute.planning.rights import Verb
from pincompute.submission.desk import Desk
from pincompute.submission.guards import LAPSE, needs
from pincompute.submission.paths import number_in
from pincompute.submission.requests import InCopy, asked, names_in, sender_of
from pincompute.submission.speech import Manner, speaks

HEARTBEAT = 30.0
"""Seconds of silence after which it is asked whether the other side is still there."""


class EntryRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self, workload: str) -> list[web.RouteDef]:
        return [
            web.get(f"{workload}/programs", self.enter),
            web.get(f"{workload}/ports/{{port}}", self.reach),
        ]

    @needs(Verb.ENTER)
    @speaks(manner=Manner.CARRIED, status=101, asks=Inside, reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, COPY_UNKNOWN))
    async def enter(self, request: web.Request) -> web.StreamResponse:
        """Run a program in a copy."""
        names, inside = names_in(request), asked(request, Inside, "nothing can be run like this")
        _must_upgrade(request)
        async with self._desk.enter(*names, inside, sender_of(request)) as execution:
            return await carried(request, execution.socket)

    @needs(Verb.ENTER)
    @speaks(manner=Manner.CARRIED, status=101, asks=InCopy, reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, COPY_UNKNOWN))
    async def reach(self, request: web.Request) -> web.StreamResponse:
        """A connection to a port of a copy."""
        names, port = names_in(request), number_in(request, "port")
        copy = asked(request, InCopy, "no copy is named like this").copy
        _must_upgrade(request)
        async with self._desk.reach(*names, copy, port, sender_of(request)) as line:
            return await carried(request, line.socket)


def _socket() -> web.WebSocketResponse:
    return web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=0)


def _must_upgrade(request: web.Request) -> None:
    """Before anybody goes in: who does not speak by a socket would be on record as somebody who did."""
    if not _socket().can_prepare(request):
        raise Refused(
            Problem(UPGRADE_NEEDED, "a copy is spoken with by a websocket", next="pin shell, or pin port-forward")
        )


async def carried(request: web.Request, within: aiohttp.ClientWebSocketResponse) -> web.StreamResponse:
    """Until either side hangs up."""
    without = _socket()
    await without.prepare(request)

    async def inwards() -> None:
        async for message in without:
            if message.type is aiohttp.WSMsgType.BINARY:
                await within.send_bytes(message.data)

    async def outwards() -> None:
        async for message in within:
            if message.type is aiohttp.WSMsgType.BINARY:
                await without.send_bytes(message.data)

    ends = aiohttp.WSCloseCode.OK
    try:
        await until_either(inwards(), outwards(), request[LAPSE]())
    except Refused:
        ends = aiohttp.WSCloseCode.POLICY_VIOLATION
    except (OSError, aiohttp.ClientError):
        # That somebody has gone is how it ends, and nothing to tell anybody.
        pass
    await without.close(code=ends)
    return without
