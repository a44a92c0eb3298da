"""HTTP transport: sends each request once to one API server and turns connection errors into ApiErrors."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from pincompute import __version__
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.line_splitter import LineSplitter
from pincompute.base.problem import Refused
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.kube.access import Access
from pincompute.kube.credentials import AuthMaterial, Credentials
from pincompute.kube.errors import ApiError, ConnectionFailure, CredentialsUnavailable, Unreachable, parse_error
from pincompute.kube.http_connection import HttpConnection
from pincompute.kube.http_framing import ResponseHead
from pincompute.kube.http_pool import ConnectFailedError, ConnectionPool, describe_error
from pincompute.kube.request import Request

T = TypeVar("T")


class ClientLimits(NamedTuple):
    """Timeouts and page size of a client."""

    connect_timeout_s: float = 5
    request_timeout_s: float = 30
    watch_timeout_s: int = 240
    """After this time the server ends a watch, and the client starts the next one."""
    watch_grace_s: float = 60
    """A watch without any event is given up this much later."""
    page_size: int = 500
    watch_list: bool = True
    """Whether to list by a watch with initial events (WatchList), if the server supports it."""


DEFAULT_LIMITS = ClientLimits()


class HttpTransport:
    """Transport by connections of our own; websockets by aiohttp. It knows no kinds: it sends and returns bytes."""

    def __init__(self, access: Access, agent: str, limits: ClientLimits, clock: Clock | None = None) -> None:
        self._access = access
        self._agent = agent
        self._limits = limits
        self._clock = clock or SystemClock()
        self._pool = ConnectionPool(access.server, access.server_name, limits.connect_timeout_s)
        address = self._pool.address
        self._path_prefix = address.path.rstrip("/") if address.netloc else ""
        self._common_headers = (
            f"Host: {address.netloc.rpartition('@')[2]}\r\n"
            f"User-Agent: {_user_agent(agent)}\r\n"
            "Accept: application/json\r\n"
            # Compressing large responses costs the API server more than the network saves.
            "Accept-Encoding: identity\r\n"
        )

    async def __aenter__(self) -> Self:
        self._credentials = Credentials(self._access, self._clock)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            middlewares=(_raise_websocket_error,),
            headers={"User-Agent": _user_agent(self._agent)},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()
        await self._session.close()
        # Aborted connections close their sockets in the next iterations of the event loop, which may stop after us.
        for _ in range(3):
            await asyncio.sleep(0)

    async def send(self, request: Request) -> bytes:
        """Sends the request and returns the whole response body."""
        return await self._authenticated(request, partial(self._send_once, request))

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """Yields the response line by line. Raises Unreachable after `silence` seconds without a byte."""
        splitter = LineSplitter()
        connection = await self._authenticated(request, partial(self._open_stream, request, silence))
        try:
            with self._connection_errors(request):
                while True:
                    async with asyncio.timeout(silence):
                        chunk = await connection.read_chunk()
                    if not chunk:
                        break
                    for line in splitter.feed(chunk):
                        yield line
        finally:
            # A response that was not read to its end closes the connection.
            self._pool.release(connection)
        if rest := splitter.flush():
            yield rest

    @asynccontextmanager
    async def connect_websocket(
        self, request: Request, protocol: str
    ) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
        """Opens a websocket of the given subprotocol."""
        async with await self._authenticated(request, partial(self._connect_once, request, protocol)) as socket:
            if socket.protocol != protocol:
                raise ApiError(
                    0, "InvalidResponse", f"the server does not support the protocol {protocol}", about=request.about
                )
            with self._connection_errors(request):
                yield socket

    async def _authenticated(self, request: Request, send: Callable[[AuthMaterial], Awaitable[T]]) -> T:
        """Sends with the current credentials, and once more with refreshed ones after a 401."""
        auth = await self._current_auth(request)
        try:
            return await send(auth)
        except ApiError as error:
            # A request with status 401 was not executed: even a write is safe to repeat.
            if error.status != 401 or not await self._refresh_auth(request, auth):
                raise
        return await send(await self._current_auth(request))

    async def _send_once(self, request: Request, auth: AuthMaterial) -> bytes:
        with self._connection_errors(request):
            async with asyncio.timeout(self._limits.request_timeout_s):
                head, connection = await self._exchange(request, auth)
                try:
                    body = await connection.read_body()
                finally:
                    self._pool.release(connection)
        if head.status >= 300:
            raise _error_of_response(head, body, request.about)
        return body

    async def _open_stream(self, request: Request, silence: float | None, auth: AuthMaterial) -> HttpConnection:
        """Sends the request and returns once a successful response has begun."""
        with self._connection_errors(request):
            async with asyncio.timeout(silence):
                head, connection = await self._exchange(request, auth)
                if head.status < 300:
                    return connection
                try:
                    body = await connection.read_body()
                finally:
                    self._pool.release(connection)
        raise _error_of_response(head, body, request.about)

    async def _exchange(self, request: Request, auth: AuthMaterial) -> tuple[ResponseHead, HttpConnection]:
        """Sends the request and returns the head of the response, and the connection on which its body follows."""
        message = self._message(request, auth)
        context = auth.ssl_context if isinstance(auth.ssl_context, ssl.SSLContext) else None
        connection = await self._pool.acquire(context)
        try:
            try:
                return await connection.request(message), connection
            except ConnectionError:
                # The server may close an idle connection just when a request is under way to it.
                if not connection.reused or connection.answered or request.method not in _REPEATABLE:
                    raise
            connection = await self._pool.acquire(context, fresh=True)
            return await connection.request(message), connection
        except BaseException:
            connection.abort()
            raise

    def _message(self, request: Request, auth: AuthMaterial) -> bytes:
        query = f"?{urlencode(request.query)}" if request.query else ""
        target = f"{self._path_prefix}{request.path}{query}"
        bearer = f"Authorization: Bearer {auth.bearer_token}\r\n" if auth.bearer_token else ""
        if not _TARGET.fullmatch(target) or not _HEADER_VALUE.fullmatch(auth.bearer_token):
            # Characters that end a line would begin another header, or another request.
            raise ApiError(0, "InvalidRequest", "the request has an invalid path or token", about=request.about)
        content = ""
        if request.body or request.method != "GET":
            content = f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
        head = f"{request.method} {target} HTTP/1.1\r\n{self._common_headers}{bearer}{content}\r\n"
        return head.encode() + request.body

    async def _connect_once(
        self, request: Request, protocol: str, auth: AuthMaterial
    ) -> aiohttp.ClientWebSocketResponse:
        with self._connection_errors(request):
            async with asyncio.timeout(self._limits.request_timeout_s):
                return await self._session.ws_connect(
                    self._url(request),
                    params=request.query,
                    protocols=(protocol,),
                    headers=_bearer_header(auth) | {_ABOUT_HEADER: request.about, "Accept": "*/*"},
                    ssl=auth.ssl_context,
                    server_hostname=self._access.server_name or None,
                    heartbeat=self._limits.request_timeout_s,
                    max_msg_size=MAX_MESSAGE_BYTES,
                )

    def _url(self, request: Request) -> URL:
        return URL(self._access.server + request.path, encoded=True)

    async def _current_auth(self, request: Request) -> AuthMaterial:
        try:
            return await self._credentials.current()
        except Refused as refused:
            raise CredentialsUnavailable(refused.problems[0], about=request.about) from refused

    async def _refresh_auth(self, request: Request, rejected: AuthMaterial) -> bool:
        try:
            return await self._credentials.refresh(rejected)
        except Refused as refused:
            raise CredentialsUnavailable(refused.problems[0], about=request.about) from refused

    @contextmanager
    def _connection_errors(self, request: Request) -> Generator[None]:
        """Raises Unreachable, with the cause, for every failure below HTTP."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(request, "connect timed out", "absent") from error
        except ConnectFailedError as error:
            raise self._unreachable(request, str(error), "absent") from error.__cause__
        except TimeoutError as error:
            raise self._unreachable(request, "timed out", "silent") from error
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(request, _describe_error(error), "absent") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, _describe_error(error), "lost") from error

    def _unreachable(self, request: Request, why: str, how: ConnectionFailure) -> Unreachable:
        return Unreachable(self._access.server, why, about=request.about, how=how)


async def _raise_websocket_error(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raises the error of a rejected websocket with its body, which aiohttp's handshake would discard."""
    about = request.headers.pop(_ABOUT_HEADER, None)
    response = await send(request)
    if about is not None and response.status != 101:
        async with response:
            headers = {name.lower().encode(): value.encode() for name, value in response.headers.items()}
            raise _error_of_response(ResponseHead(response.status, headers), await response.read(), about)
    return response


_ABOUT_HEADER = "X-About"
"""Tells the middleware the object of a websocket request. It is removed before the request is sent."""


def _error_of_response(head: ResponseHead, body: bytes, about: str) -> ApiError:
    return parse_error(
        body, status=head.status, about=about, retry_after=head.header(b"retry-after"), date=head.header(b"date")
    )


_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
"""Methods that have the same effect if they are sent twice."""
_TARGET = re.compile(r"/[!-~]*")
_HEADER_VALUE = re.compile(r"[ -~]*")


def _user_agent(agent: str) -> str:
    return f"pincompute/{__version__} {agent}"


def _bearer_header(auth: AuthMaterial) -> dict[str, str]:
    return {"Authorization": f"Bearer {auth.bearer_token}"} if auth.bearer_token else {}


def _describe_error(error: Exception) -> str:
    """Cause of a connection error in plain words, without aiohttp's class names."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    return describe_error(error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error)
