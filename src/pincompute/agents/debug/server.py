"""HTTP API of the agent: sessions over websockets, and the desk's orders to end them."""

from __future__ import annotations

import asyncio
import socket as sockets
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.debug.container_program import ContainerProgram, ExecOptions
from pincompute.agents.debug.containerd import Container, Containerd
from pincompute.agents.debug.grants import GrantVerifier
from pincompute.agents.debug.helper_program import HelperProgram
from pincompute.agents.debug.program import Program
from pincompute.agents.debug.relay import PROTOCOL, relay_program
from pincompute.agents.debug.sessions import Session, Sessions
from pincompute.api.debug import DebugRequest
from pincompute.base.aio import run_until_first_completes
from pincompute.base.clock import Clock
from pincompute.base.debug_grant import END, MAX_SESSION_S, Grant
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_UNAVAILABLE, DOCUMENT_INVALID, GRANT_REFUSED, WEBSOCKET_REQUIRED
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES

EXEC_PREFIX = "pin-debug-"
"""Ids of our programs, by which those of an earlier agent are found."""
FILES, PROCESSES = "pincompute.agents.debug.files", "pincompute.agents.debug.processes"
CLOSE_TIMEOUT_S = 10.0
_BEARER = "Bearer "
_KEEPALIVE = {sockets.TCP_KEEPIDLE: 30, sockets.TCP_KEEPINTVL: 10, sockets.TCP_KEEPCNT: 3}
"""Detects clients that disappeared. No websocket pings, as input that a program does not read holds them up."""
log = structlog.get_logger()


class DebugServer:
    def __init__(self, containerd: Containerd, verifier: GrantVerifier, clock: Clock) -> None:
        self.sessions = Sessions()
        self._containerd = containerd
        self._verifier = verifier
        self._clock = clock

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_error_middleware], client_max_size=MAX_MESSAGE_BYTES)
        app.add_routes(
            [
                web.get("/healthz", _health_page),
                web.get("/v1/sessions", self.open_session),
                web.post("/v1/sessions/end", self.end_session),
            ]
        )
        return app

    async def open_session(self, request: web.Request) -> web.StreamResponse:
        """Opens the session of a grant. Everything that can be refused is, before the websocket opens."""
        response = web.WebSocketResponse(compress=False, max_msg_size=MAX_MESSAGE_BYTES, protocols=(PROTOCOL,))
        if not response.can_prepare(request):
            raise Refused(Problem(WEBSOCKET_REQUIRED, "sessions are websockets", next="pin shell NAME"))
        text = request.query.get("request", "")
        grant = self._verifier.verify(_bearer(request), text.encode())
        asked = _parse_request(text, grant)
        with self.sessions.opened(grant) as session:
            async with self._started(grant, asked) as program:
                await response.prepare(request)
                _keep_alive(request)
                log.info("session begins", verb=grant.verb, caller=grant.sub, uid=grant.uid, container=grant.container)
                ending = await self._relay(response, program, session)
            await _close(request, response, ending)
        log.info("session ends", verb=grant.verb, caller=grant.sub, uid=grant.uid, container=grant.container)
        return response

    async def end_session(self, request: web.Request) -> web.Response:
        """Ends a session by the desk's order, as its caller has lost the role, or has left."""
        grant = self._verifier.verify(_bearer(request))
        if grant.verb != END:
            raise Refused(Problem(GRANT_REFUSED, "the grant is for a session, and orders no end"))
        self.sessions.end_named(grant.session)
        return web.Response(status=204)

    @asynccontextmanager
    async def _started(self, grant: Grant, asked: DebugRequest) -> AsyncGenerator[Program]:
        program = await self._start(grant, asked)
        try:
            yield program
        finally:
            # Also if the session is cancelled: no program outlives it.
            await asyncio.shield(program.dispose())

    async def _start(self, grant: Grant, asked: DebugRequest) -> Program:
        find = self._containerd.find_ended if asked.ended else self._containerd.find_running
        container = await find(grant.uid, grant.container)
        if asked.verb == "exec":
            options = ExecOptions(asked.command, asked.terminal, asked.input)
            return await ContainerProgram.start(self._containerd, container, EXEC_PREFIX + grant.jti, options)
        task: dict[str, Any] = {"pid": container.pid, "container": container.id}
        if asked.verb == "processes":
            return await HelperProgram.start(
                PROCESSES, {**task, "pids": await self._containerd.list_pids(container.id)}
            )
        mounts = [each._asdict() for each in await self._containerd.mounts_of(container)] if asked.ended else []
        files = {"verb": asked.verb, "path": asked.path, "mounts": mounts, "identity": identity_of(container)}
        return await HelperProgram.start(FILES, {**task, **files})

    async def _relay(self, response: web.WebSocketResponse, program: Program, session: Session) -> str:
        """Relays until the program or the connection has ended, or the session must. Returns why it must."""
        try:
            await run_until_first_completes(relay_program(response, program), self._limit(), _raise_when_ended(session))
        except _SessionEnded as ended:
            return str(ended)
        except (OSError, aiohttp.ClientError):
            # A connection that breaks is a normal end.
            pass
        return ""

    async def _limit(self) -> None:
        await self._clock.sleep(MAX_SESSION_S)
        raise _SessionEnded(f"the session has lasted {MAX_SESSION_S // 3600} hours, which is the limit")


class _SessionEnded(Exception):  # noqa: N818  (named by what happened)
    """The text is sent to the client."""


async def _raise_when_ended(session: Session) -> None:
    await session.ended.wait()
    raise _SessionEnded("the desk has ended the session")


async def _close(request: web.Request, response: web.WebSocketResponse, ending: str) -> None:
    code = aiohttp.WSCloseCode.POLICY_VIOLATION if ending else aiohttp.WSCloseCode.OK
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await response.close(code=code, message=ending.encode())
    except TimeoutError:
        # A client that does not read gets no farewell.
        if request.transport is not None:
            request.transport.abort()


def identity_of(container: Container) -> dict[str, Any]:
    """User, groups and capabilities of a container, for helpers that touch its files."""
    user = container.process.get("user") or {}
    capabilities = (container.process.get("capabilities") or {}).get("effective") or []
    return {
        "uid": user.get("uid", 0), "gid": user.get("gid", 0), "groups": user.get("additionalGids") or [],
        "capabilities": capabilities,
    }  # fmt: skip


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    return context


def _parse_request(text: str, grant: Grant) -> DebugRequest:
    try:
        asked = msgspec.json.decode(text, type=DebugRequest)
    except msgspec.DecodeError as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"invalid request for a session: {error}")) from None
    if asked.verb != grant.verb:
        raise Refused(Problem(GRANT_REFUSED, f"the grant allows {grant.verb}, and not {asked.verb}"))
    return asked


def _bearer(request: web.Request) -> str:
    header = request.headers.get("Authorization", "")
    if not header.startswith(_BEARER):
        raise Refused(Problem(GRANT_REFUSED, "a session needs a grant of the desk", next="pin shell NAME"))
    return header.removeprefix(_BEARER)


def _keep_alive(request: web.Request) -> None:
    assert request.transport is not None
    connection: sockets.socket = request.transport.get_extra_info("socket")
    for option, seconds in _KEEPALIVE.items():
        connection.setsockopt(sockets.IPPROTO_TCP, option, seconds)


async def _health_page(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@web.middleware
async def _error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns errors into problem documents. Those of bugs go to the log only."""
    try:
        return await handler(request)
    except Refused as refused:
        log.warning("session refused", why=refused.problems[0].what)
        return _problem_response(refused)
    except (web.HTTPException, asyncio.CancelledError):
        raise
    except Exception:
        log.exception("session failed")
        return _problem_response(Refused(Problem(DEBUG_AGENT_UNAVAILABLE, "the agent of the node failed: see its log")))


def _problem_response(refused: Refused) -> web.Response:
    document = refused.json()
    return web.Response(
        body=msgspec.json.encode(document), status=document["status"], content_type="application/problem+json"
    )
