"""Sessions with the agent of a node: the desk gives a ticket for each, and then the connection passes neither it nor
the API server."""

from __future__ import annotations

import asyncio
import socket as sockets
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import click
import msgspec

from pincompute.api.debug import DebugTicket
from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_MISSING, DEBUG_AGENT_UNAVAILABLE, FORBIDDEN, PATH_UNKNOWN
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.cli.http_client import TransportError
from pincompute.cli.retry import RetryPolicy
from pincompute.cli.websocket import open_websocket, raise_rejection
from pincompute.kube.exec_stream import EXEC_PROTOCOL, ExecStream

CONNECT_TIMEOUT_S = 5.0
"""The addresses of nodes may be out of reach from here."""
TICKET_TIMEOUT_S = 30.0
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class AgentUnavailable(Exception):  # noqa: N818  (named by what happened)
    """No session has begun. The text is for users; it is empty where a platform has no agents at all."""

    def __init__(self, why: str, refused: Refused | None = None) -> None:
        super().__init__(why)
        self.refused = refused or Refused(Problem(DEBUG_AGENT_UNAVAILABLE, why, next="pin status"))

    def echo(self) -> None:
        """Tells the user that the session is slower than it could be, and why."""
        if str(self):
            click.echo(f"{self}: through the API server", err=True)


@asynccontextmanager
async def open_agent_session(
    context: Context, path: str, headers: Mapping[str, str], retry_policy: RetryPolicy
) -> AsyncIterator[ExecStream]:
    """Raises AgentUnavailable if no session can begin, and Refused for what another way would not allow either."""
    try:
        async with open_websocket(context, path, headers, retry_policy) as desk:
            ticket = await _receive_ticket(desk)
            async with _connect_agent(ticket) as agent:
                watcher = asyncio.create_task(_close_when_revoked(desk, agent))
                try:
                    yield ExecStream(agent, ticket.replica, ticket.url)
                    # The desk ends what has lost its role; the agent, what has reached its limit.
                except Refused:
                    if agent.close_code != aiohttp.WSCloseCode.POLICY_VIOLATION:
                        raise
                    raise _ended_session(ticket) from None
                finally:
                    watcher.cancel()
    except Refused as refused:
        reason = refused.problems[0].reason
        if reason in {DEBUG_AGENT_MISSING, PATH_UNKNOWN}:
            # PATH_UNKNOWN: an older desk.
            raise AgentUnavailable("", refused) from refused
        raise


async def _receive_ticket(desk: aiohttp.ClientWebSocketResponse) -> DebugTicket:
    try:
        async with asyncio.timeout(TICKET_TIMEOUT_S):
            return msgspec.json.decode(await desk.receive_bytes(), type=DebugTicket)
    except (TypeError, TimeoutError, msgspec.DecodeError) as error:
        raise TransportError(str(error) or "no ticket for a session") from error


@asynccontextmanager
async def _connect_agent(ticket: DebugTicket) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
    session = aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {ticket.grant}"},
        timeout=timeout,
        middlewares=(raise_rejection,),
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ticket.authority)),
    )
    async with session:
        try:
            # Without pings: input that the program does not read holds up the replies.
            opened = await session.ws_connect(
                f"{ticket.url}/v1/sessions", params={"request": ticket.request},
                protocols=(EXEC_PROTOCOL,), max_msg_size=MAX_MESSAGE_BYTES,
            )  # fmt: skip
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            why = f"the agent of {ticket.node} does not answer: {error or type(error).__name__}"
            raise AgentUnavailable(why) from error
        except Refused as refused:
            if refused.problems[0].reason is DEBUG_AGENT_UNAVAILABLE:
                raise AgentUnavailable(refused.problems[0].what, refused) from refused
            raise
        _keep_alive(opened)
        async with opened:
            yield opened


def _keep_alive(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Detects an agent whose machine is gone. Other systems than Linux have other names for these options."""
    connection: sockets.socket = socket.get_extra_info("socket")
    connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    for option, seconds in _KEEPALIVE.items():
        if (number := getattr(sockets, option, None)) is not None:
            connection.setsockopt(sockets.IPPROTO_TCP, number, seconds)


async def _close_when_revoked(desk: aiohttp.ClientWebSocketResponse, agent: aiohttp.ClientWebSocketResponse) -> None:
    """Closes the session when the desk says so. A desk that crashes interrupts no shell."""
    async for _ in desk:
        pass
    if desk.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION:
        await agent.close()


def _ended_session(ticket: DebugTicket) -> Refused:
    what = f"the session with {ticket.replica} was ended: your permission was withdrawn, or it has lasted too long"
    return Refused(Problem(FORBIDDEN, what, next="pin whoami"))
