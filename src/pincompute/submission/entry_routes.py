"""The desk's doors into copies: who goes in is on record, and what both sides say is carried as it is."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from pincompute.api.entering import Inside
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import COPY_UNKNOWN, DOCUMENT_INVALID, WORKLOAD_UNKNOWN
from pincompute.kube.ways import until_either
from pincompute.planning.rights import Verb
from pincompute.submission.desk import Desk
from pincompute.submission.guards import LAPSE, needs
from pincompute.submission.requests import InCopy, asked, names_in, sender_of
from pincompute.submission.speech import Manner, speaks

HEARTBEAT = 30.0
"""Seconds of silence after which it is asked whether the other side is still there."""
PORTS = range(1, 65_536)


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
        inside = asked(request, Inside, "nothing can be run like this")
        async with self._desk.enter(*names_in(request), inside, sender_of(request)) as execution:
            return await carried(request, execution.socket)

    @needs(Verb.ENTER)
    @speaks(manner=Manner.CARRIED, status=101, asks=InCopy, reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, COPY_UNKNOWN))
    async def reach(self, request: web.Request) -> web.StreamResponse:
        """A connection to a port of a copy."""
        said, copy = request.match_info["port"], asked(request, InCopy, "no copy is named like this").copy
        port = int(said) if said.isdecimal() else 0
        if port not in PORTS:
            raise Refused(Problem(DOCUMENT_INVALID, f"'{said}' is no port: they are {PORTS[0]} to {PORTS[-1]}"))
        async with self._desk.reach(*names_in(request), copy, port, sender_of(request)) as line:
            return await carried(request, line.socket)


async def carried(request: web.Request, within: aiohttp.ClientWebSocketResponse) -> web.StreamResponse:
    """Until either side hangs up."""
    without = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=0)
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
