"""Tickets for sessions with the agents of nodes, which the desk signs, and its orders to end sessions.

The desk relays nothing of a session. It watches over it as long as the caller holds the connection by which the ticket
came, and orders its end when the caller leaves, or loses the role.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import structlog

from pincompute.api.debug import DebugRequest, DebugTicket
from pincompute.api.workload import Workload
from pincompute.base.debug_grant import END, GrantSigner, GrantSubject
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_MISSING, DOCUMENT_INVALID
from pincompute.platforms.access import ReplicaLocation

ORDER_TIMEOUT_S = 10.0
Locate = Callable[[Workload, DebugRequest], Awaitable[ReplicaLocation]]
log = structlog.get_logger()


class OpenedSession(NamedTuple):
    ticket: DebugTicket
    session: str
    caller: str


class DebugAgents:
    """The agents, which listen on the addresses of their nodes, all on one port."""

    def __init__(self, locate: Locate, signer: GrantSigner, ids: Ids, port: int, authority: Path) -> None:
        self._locate = locate
        self._signer = signer
        self._ids = ids
        self._port = port
        self._authority = authority

    async def open(self, workload: Workload, request: DebugRequest, caller: str) -> OpenedSession:
        """A ticket for the session that was authorized."""
        place = await self._locate(workload, request)
        if not place.address:
            what = f"the node of {place.pod} has no address"
            raise Refused(Problem(DEBUG_AGENT_MISSING, what, next=f"pin why {workload.metadata.name}"))
        session, body = self._ids.new("session"), msgspec.json.encode(request)
        subject = GrantSubject(place.node, caller, session, request.verb, place.uid, place.container, body)
        ticket = DebugTicket(
            url=f"https://{_host(place.address)}:{self._port}", authority=self._authority.read_text(),
            grant=self._signer.sign(subject), request=body.decode(),
            node=place.node, replica=place.pod, container=place.container,
        )  # fmt: skip
        return OpenedSession(ticket, session, caller)

    async def end_session(self, opened: OpenedSession) -> None:
        """Orders the agent to end a session; without effect if it has ended, or never begun."""
        ticket = opened.ticket
        order = self._signer.sign(GrantSubject(ticket.node, opened.caller, opened.session, END))
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=ticket.authority))
        timeout = aiohttp.ClientTimeout(total=ORDER_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {order}"}
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as client,
                client.post(f"{ticket.url}/v1/sessions/end", allow_redirects=False) as response,
            ):
                if response.status != 204:
                    log.error("session not ended", node=ticket.node, status=response.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.error("session not ended", node=ticket.node, error=str(error) or type(error).__name__)


def require_valid(request: DebugRequest) -> None:
    """Refuses what no agent could do, before the access is recorded."""
    if request.verb == "exec" and not request.command:
        raise Refused(Problem(DOCUMENT_INVALID, "a session that runs a program needs its command"))
    if request.verb in {"list", "read", "write"} and not request.path:
        raise Refused(Problem(DOCUMENT_INVALID, f"a session with the verb {request.verb} needs a path"))
    if request.ended and request.verb not in {"list", "read"}:
        raise Refused(Problem(DOCUMENT_INVALID, f"an ended container cannot {request.verb}: only list and read"))


def no_agents() -> Refused:
    what = "this platform has no node agents for debugging"
    return Refused(Problem(DEBUG_AGENT_MISSING, what, next="pin shell, which then uses the API server"))


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
