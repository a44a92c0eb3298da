"""The transport: sends requests to one API server by HTTP, each once, and says in words what breaks."""

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
from pincompute.kube.access import Access
from pincompute.kube.credentials import Credentials, Shown
from pincompute.kube.errors import ApiError, How, Unproven, Unreachable, error_of
from pincompute.kube.request import Request
from pincompute.kube.splitter import Splitter

T = TypeVar("T")


class Limits(NamedTuple):
    """Seconds, and how much is asked for at once."""

    connect: float = 5
    whole: float = 30
    watch: int = 240
    """After this long the server ends a watch, and it is begun again."""
    silence: float = 60
    """How much later than that a watch which says nothing is given up."""
    page: int = 500
    stream: bool = True
    """Whether a first list may come by a watch, where the server does that."""


USUAL = Limits()


class Transport:
    """Knows nothing of kinds: bytes go in and come out."""

    def __init__(self, access: Access, agent: str, limits: Limits, clock: Clock | None = None) -> None:
        self._access = access
        self._agent = agent
        self._limits = limits
        self._clock = clock or SystemClock()

    async def __aenter__(self) -> Self:
        self._credentials = Credentials(self._access, self._clock)
        self._session = aiohttp.ClientSession(
            # Watches hold a connection each, so the pool's customary limit would starve whoever comes last.
            connector=aiohttp.TCPConnector(limit=0),
            middlewares=(_hear_why_not,),
            headers={
                "User-Agent": f"pincompute/{__version__} {self._agent}",
                "Accept": "application/json",
                # Packing large answers costs the API server more than the network would.
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        # Connections that were hung up let go of their sockets in the loop's next rounds, and the loop may end with us.
        for _ in range(3):
            await asyncio.sleep(0)

    async def send(self, request: Request) -> bytes:
        """The whole answer."""
        patience = aiohttp.ClientTimeout(total=self._limits.whole, sock_connect=self._limits.connect)
        async with await self._open(request, patience) as answer:
            with self._in_words(request):
                return await answer.read()

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """An answer line by line, as it comes; given up after so many seconds of silence."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect, sock_read=silence)
        splitter = Splitter()
        answer = await self._open(request, patience)
        try:
            with self._in_words(request):
                async for chunk in answer.content.iter_any():
                    for line in splitter.feed(chunk):
                        yield line
        finally:
            _hang_up(answer)
        if rest := splitter.end():
            yield rest

    @asynccontextmanager
    async def dial(self, request: Request, protocol: str) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
        """A connection that carries messages both ways."""
        async with await self._accepted(request, partial(self._dial, request, protocol)) as socket:
            if socket.protocol != protocol:
                raise ApiError(0, "Unreadable", f"the server does not speak {protocol}", about=request.about)
            with self._in_words(request):
                yield socket

    async def _open(self, request: Request, patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send it, and wait until a good answer begins."""
        return await self._accepted(request, partial(self._ask, request, patience))

    async def _accepted(self, request: Request, ask: Callable[[Shown], Awaitable[T]]) -> T:
        """Ask with what is to be shown; and once more where that is not accepted, and something else can be."""
        shown = await self._show(request)
        try:
            return await ask(shown)
        except ApiError as error:
            # Nothing was done: even a write may be sent again.
            if error.status != 401 or not await self._renewed(request, shown):
                raise
        return await ask(await self._show(request))

    async def _ask(self, request: Request, patience: aiohttp.ClientTimeout, shown: Shown) -> aiohttp.ClientResponse:
        with self._in_words(request):
            answer = await self._session.request(
                request.method,
                self._url(request),
                params=request.query,
                data=request.body or None,
                headers=_bearer(shown) | ({"Content-Type": request.content} if request.body else {}),
                timeout=patience,
                ssl=shown.tls,
                server_hostname=self._access.server_name or None,
                # Whoever answers for the address may not send what we carry elsewhere.
                allow_redirects=False,
            )
            if answer.status < 300:
                return answer
            async with answer:
                raise await _error(answer, request.about)

    async def _dial(self, request: Request, protocol: str, shown: Shown) -> aiohttp.ClientWebSocketResponse:
        with self._in_words(request):
            async with asyncio.timeout(self._limits.whole):
                return await self._session.ws_connect(
                    self._url(request),
                    params=request.query,
                    protocols=(protocol,),
                    headers=_bearer(shown) | {_ABOUT: request.about, "Accept": "*/*"},
                    ssl=shown.tls,
                    server_hostname=self._access.server_name or None,
                    heartbeat=self._limits.whole,
                    max_msg_size=0,
                )

    def _url(self, request: Request) -> URL:
        return URL(self._access.server + request.path, encoded=True)

    async def _show(self, request: Request) -> Shown:
        try:
            return await self._credentials.show()
        except Refused as refused:
            raise Unproven(refused.problems[0], about=request.about) from refused

    async def _renewed(self, request: Request, shown: Shown) -> bool:
        try:
            return await self._credentials.renew(shown)
        except Refused as refused:
            raise Unproven(refused.problems[0], about=request.about) from refused

    @contextmanager
    def _in_words(self, request: Request) -> Generator[None]:
        """Whatever breaks below HTTP is Unreachable, and says why."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(request, "it took too long to connect", "absent") from error
        except TimeoutError as error:
            raise self._unreachable(request, "it took too long", "silent") from error
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(request, _words(error), "absent") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, _words(error), "lost") from error

    def _unreachable(self, request: Request, why: str, how: How) -> Unreachable:
        return Unreachable(self._access.server, why, about=request.about, how=how)


async def _hear_why_not(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A refused websocket has words too, which its handshake would throw away."""
    about = request.headers.pop(_ABOUT, None)
    answer = await send(request)
    if about is not None and answer.status != 101:
        async with answer:
            raise await _error(answer, about)
    return answer


_ABOUT = "X-About"
"""Stands in no request that is sent: it tells the one above what the words are about."""


async def _error(answer: aiohttp.ClientResponse, about: str) -> ApiError:
    return error_of(
        await answer.read(),
        status=answer.status,
        about=about,
        retry_after=answer.headers.get("Retry-After", ""),
        date=answer.headers.get("Date", ""),
    )


def _bearer(shown: Shown) -> dict[str, str]:
    return {"Authorization": f"Bearer {shown.bearer}"} if shown.bearer else {}


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """Leave an answer that is not at its end: a polite goodbye by TLS would wait until the server has noticed."""
    if answer.connection and answer.connection.transport:
        answer.connection.transport.abort()
    answer.close()


def _words(error: Exception) -> str:
    """What went wrong below HTTP, without the client's own vocabulary."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it hung up"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer broke off"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return str(cause) or type(cause).__name__
