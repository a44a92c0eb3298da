"""Endpoints that connect to a replica: exec and port-forward, over websockets. Each access is in the audit log."""

from __future__ import annotations

from collections.abc import Awaitable

import aiohttp
import msgspec
from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.debug import DebugRequest, DebugTicket
from pincompute.api.exec_request import ExecRequest
from pincompute.base.aio import run_until_first_completes
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import (
    DEBUG_AGENT_MISSING,
    DOCUMENT_INVALID,
    REPLICA_UNKNOWN,
    WEBSOCKET_REQUIRED,
    WORKLOAD_UNKNOWN,
)
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import ACCESS_REVOKED, requires
from pincompute.desk.http.endpoint import ResponseMode, endpoint
from pincompute.desk.http.path_parameters import path_number
from pincompute.desk.http.requests import ReplicaQuery, call_context, parse_query, project_and_name

_PING_INTERVAL_S = 30.0
"""Detects clients that disappeared without closing the connection."""


class ExecRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self, workload: str) -> list[web.RouteDef]:
        return [
            web.get(f"{workload}/programs", self.exec),
            web.get(f"{workload}/ports/{{port}}", self.port_forward),
            web.get(f"{workload}/sessions", self.session_ticket),
        ]

    @requires(Permission.EXEC)
    @endpoint(
        mode=ResponseMode.WEBSOCKET,
        status=101,
        query=ExecRequest,
        reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, REPLICA_UNKNOWN),
    )
    async def exec(self, request: web.Request) -> web.StreamResponse:
        """Run a program in a replica."""
        names, exec_request = project_and_name(request), parse_query(request, ExecRequest, "invalid exec parameters")
        _require_websocket(request)
        async with self._desk.exec(*names, exec_request, call_context(request)) as connection:
            return await relay_websocket(request, connection.socket)

    @requires(Permission.EXEC)
    @endpoint(
        mode=ResponseMode.WEBSOCKET,
        status=101,
        query=ReplicaQuery,
        reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, REPLICA_UNKNOWN),
    )
    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        """Open a connection to a port of a replica."""
        names, port = project_and_name(request), path_number(request, "port")
        replica = parse_query(request, ReplicaQuery, "invalid port-forward parameters").replica
        _require_websocket(request)
        async with self._desk.port_forward(*names, replica, port, call_context(request)) as connection:
            return await relay_websocket(request, connection.socket)

    @requires(Permission.EXEC)
    @endpoint(
        mode=ResponseMode.WEBSOCKET,
        status=101,
        query=DebugRequest,
        reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, REPLICA_UNKNOWN, DEBUG_AGENT_MISSING),
    )
    async def session_ticket(self, request: web.Request) -> web.StreamResponse:
        """Get a ticket for a session with the agent of a node. The session ends with this connection."""
        names, asked = project_and_name(request), parse_query(request, DebugRequest, "invalid parameters of a session")
        _require_websocket(request)
        async with self._desk.debug_session(*names, asked, call_context(request)) as ticket:
            return await _hold_ticket(request, ticket)


async def _hold_ticket(request: web.Request, ticket: DebugTicket) -> web.StreamResponse:
    """Sends the ticket, and returns when the client has left, or has lost access."""
    client = _websocket_response()
    await client.prepare(request)

    async def until_closed() -> None:
        async for _ in client:
            pass

    async def work() -> None:
        await client.send_bytes(msgspec.json.encode(ticket))
        await run_until_first_completes(until_closed(), request[ACCESS_REVOKED]())

    return await _close_after(client, work())


def _websocket_response() -> web.WebSocketResponse:
    return web.WebSocketResponse(heartbeat=_PING_INTERVAL_S, compress=False, max_msg_size=MAX_MESSAGE_BYTES)


def _require_websocket(request: web.Request) -> None:
    """Refuses plain requests before the access is recorded in the audit log."""
    if not _websocket_response().can_prepare(request):
        raise Refused(
            Problem(WEBSOCKET_REQUIRED, "this endpoint requires a websocket", next="pin shell, or pin port-forward")
        )


async def relay_websocket(request: web.Request, replica: aiohttp.ClientWebSocketResponse) -> web.StreamResponse:
    """Relays binary messages until one side closes its connection, or the caller loses access."""
    client = _websocket_response()
    await client.prepare(request)

    async def to_replica() -> None:
        async for message in client:
            if message.type is aiohttp.WSMsgType.BINARY:
                await replica.send_bytes(message.data)

    async def to_client() -> None:
        async for message in replica:
            if message.type is aiohttp.WSMsgType.BINARY:
                await client.send_bytes(message.data)

    return await _close_after(client, run_until_first_completes(to_replica(), to_client(), request[ACCESS_REVOKED]()))


async def _close_after(client: web.WebSocketResponse, work: Awaitable[None]) -> web.WebSocketResponse:
    """Closes the connection when the work ends, with another code where the caller has lost access."""
    close_code = aiohttp.WSCloseCode.OK
    try:
        await work
    except Refused:
        close_code = aiohttp.WSCloseCode.POLICY_VIOLATION
    except (OSError, aiohttp.ClientError):
        # A connection that breaks is a normal end.
        pass
    await client.close(code=close_code)
    return client
