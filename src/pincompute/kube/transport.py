"""HTTP transport: sends each request once to one API server and turns connection errors into ApiErrors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import aiohttp
from yarl import URL

from pincompute import __version__
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Refused
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.kube.access import Access
from pincompute.kube.credentials import AuthMaterial, Credentials
from pincompute.kube.errors import ApiError, ConnectionFailure, CredentialsUnavailable, Unreachable, parse_error
from pincompute.kube.line_splitter import LineSplitter
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
    """Transport by aiohttp. It knows no kinds: it sends and returns bytes."""

    def __init__(self, access: Access, agent: str, limits: ClientLimits, clock: Clock | None = None) -> None:
        self._access = access
        self._agent = agent
        self._limits = limits
        self._clock = clock or SystemClock()

    async def __aenter__(self) -> Self:
        self._credentials = Credentials(self._access, self._clock)
        self._session = aiohttp.ClientSession(
            # Each watch holds a connection, so that aiohttp's default limit of 100 would block later requests.
            connector=aiohttp.TCPConnector(limit=0),
            middlewares=(_raise_websocket_error,),
            headers={
                "User-Agent": f"pincompute/{__version__} {self._agent}",
                "Accept": "application/json",
                # Compressing large responses costs the API server more than the network saves.
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        # Aborted connections close their sockets in the next iterations of the event loop, which may stop after us.
        for _ in range(3):
            await asyncio.sleep(0)

    async def send(self, request: Request) -> bytes:
        """Sends the request and returns the whole response body."""
        client_timeout = aiohttp.ClientTimeout(
            total=self._limits.request_timeout_s, sock_connect=self._limits.connect_timeout_s
        )
        async with await self._open(request, client_timeout) as response:
            with self._connection_errors(request):
                return await response.read()

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """Yields the response line by line. Raises Unreachable after `silence` seconds without a byte."""
        client_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._limits.connect_timeout_s, sock_read=silence
        )
        splitter = LineSplitter()
        response = await self._open(request, client_timeout)
        try:
            with self._connection_errors(request):
                async for chunk in response.content.iter_any():
                    for line in splitter.feed(chunk):
                        yield line
        finally:
            _abort(response)
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

    async def _open(self, request: Request, client_timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Sends the request and returns once a successful response has begun."""
        return await self._authenticated(request, partial(self._send_once, request, client_timeout))

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

    async def _send_once(
        self, request: Request, client_timeout: aiohttp.ClientTimeout, auth: AuthMaterial
    ) -> aiohttp.ClientResponse:
        with self._connection_errors(request):
            response = await self._session.request(
                request.method,
                self._url(request),
                params=request.query,
                data=request.body or None,
                headers=_bearer_header(auth) | ({"Content-Type": request.content_type} if request.body else {}),
                timeout=client_timeout,
                ssl=auth.ssl_context,
                server_hostname=self._access.server_name or None,
                # A redirect would send our credentials to another server.
                allow_redirects=False,
            )
            if response.status < 300:
                return response
            async with response:
                raise await _error_of_response(response, request.about)

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
            raise await _error_of_response(response, about)
    return response


_ABOUT_HEADER = "X-About"
"""Tells the middleware the object of a websocket request. It is removed before the request is sent."""


async def _error_of_response(response: aiohttp.ClientResponse, about: str) -> ApiError:
    return parse_error(
        await response.read(),
        status=response.status,
        about=about,
        retry_after=response.headers.get("Retry-After", ""),
        date=response.headers.get("Date", ""),
    )


def _bearer_header(auth: AuthMaterial) -> dict[str, str]:
    return {"Authorization": f"Bearer {auth.bearer_token}"} if auth.bearer_token else {}


def _abort(response: aiohttp.ClientResponse) -> None:
    """Closes the connection of an unfinished response. A TLS shutdown would wait for the server's confirmation."""
    if response.connection and response.connection.transport:
        response.connection.transport.abort()
    response.close()


def _describe_error(error: Exception) -> str:
    """Cause of a connection error in plain words, without aiohttp's class names."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the response was truncated"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return str(cause) or type(cause).__name__
