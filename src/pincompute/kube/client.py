"""The client: sends requests to one API server, and reads what comes back."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

from pincompute import __version__
from pincompute.kube import request as requests
from pincompute.kube.access import Access
from pincompute.kube.errors import ApiError, Gone, Unreachable, error_of
from pincompute.kube.request import Request, Style, Target
from pincompute.kube.resource import PODS, Object, Resource
from pincompute.kube.retry import pause
from pincompute.kube.watch import BOOKMARK, Event, Splitter, told

T = TypeVar("T")


class Listing(NamedTuple):
    """All objects that were asked for, as they were at one revision."""

    items: list[Any]
    revision: str


class Limits(NamedTuple):
    """Seconds, and how much is asked for at once."""

    connect: float = 5
    whole: float = 30
    watch: int = 240
    """After this long the server ends a watch, and it is begun again."""
    silence: float = 60
    """How much later than that a watch which says nothing is given up."""
    page: int = 500


USUAL = Limits()


class _PageMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _PageMeta
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page)


class Client:
    """Used as `async with Client(access, agent="pin-operator") as client`."""

    def __init__(self, access: Access, agent: str, limits: Limits = USUAL) -> None:
        self.access = access
        self.limits = limits
        self._agent = agent

    async def __aenter__(self) -> Self:
        tls = self.access.tls() if self.access.server.startswith("https") else True
        self._session = aiohttp.ClientSession(
            # Watches hold a connection each, so the pool's customary limit would starve whoever comes last.
            connector=aiohttp.TCPConnector(limit=0, ssl=tls),
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

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._object(requests.get(Target(resource, name, namespace)))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        type: type[Any] | None = None,  # noqa: A002
    ) -> Listing:
        """Every object that matches, as dicts or as the type that is given."""
        decoder = msgspec.json.Decoder(type or dict[str, Any])
        return await self.collect(requests.select(resource, namespace, labels=labels, fields=fields), decoder.decode)

    async def create(self, resource: Resource, object: Object, *, manager: str) -> Object:  # noqa: A002
        return await self._object(requests.create(Target.of(resource, object), object, manager))

    async def apply(
        self,
        object: Object,  # noqa: A002
        resource: Resource,
        *,
        manager: str,
        force: bool = True,
        subresource: str = "",
    ) -> Object:
        """Make the fields that are named be so, and let go of those named last time and no more."""
        target = Target.of(resource, object, subresource)
        return await self._object(requests.apply(target, object, manager, force=force))

    async def patch(  # noqa: PLR0913  (they are the words of one sentence, most by name)
        self,
        resource: Resource,
        name: str,
        namespace: str,
        body: Any,
        *,
        style: Style,
        manager: str,
        subresource: str = "",
    ) -> Object:
        target = Target(resource, name, namespace, subresource)
        return await self._object(requests.patch(target, body, style, manager))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """With a uid, only that very object: Conflict, when another of its name stands there by now."""
        await self._send(requests.delete(Target(resource, name, namespace), uid, propagation))

    async def watch(  # noqa: PLR0913
        self,
        resource: Resource,
        namespace: str = "",
        *,
        revision: str = "",
        labels: str = "",
        fields: str = "",
        type: type[Any] | None = None,  # noqa: A002
    ) -> AsyncGenerator[Event[Any]]:
        """What happens from a revision on, until the server ends it; from no revision, what is there comes first."""
        decoder = msgspec.json.Decoder(type or dict[str, Any])
        selection = requests.select(resource, namespace, labels=labels, fields=fields)
        async with aclosing(self.watch_lines(selection, revision)) as lines:
            async for line in lines:
                event = told(line, selection.about)
                if event.type != BOOKMARK:
                    yield Event(event.type, decoder.decode(event.object))

    async def logs(  # noqa: PLR0913
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        tail: int | None = None,
        follow: bool = False,
        previous: bool = False,
    ) -> AsyncGenerator[str]:
        """A container's lines, without their line breaks; with `follow`, for as long as it prints."""
        asked = requests.logs(
            Target(PODS, pod, namespace), container=container, tail=tail, follow=follow, previous=previous
        )
        async with aclosing(self.lines(asked, silence=None if follow else self.limits.whole)) as lines:
            async for line in lines:
                yield line.decode("utf-8", "replace")

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        content: str = requests.JSON,
    ) -> bytes:
        """Anything else that the server offers: `raw("GET", "/readyz")`."""
        return await self._send(Request(method, path, query or {}, body, content, about=path))

    async def collect(self, selection: Request, read: Callable[[msgspec.Raw], T]) -> Listing:
        """Every object that matches, each read as its page comes in, so that no more than one page is held unread."""
        for _ in range(2):
            with suppress(Gone):
                return await self._pages(selection, read)
            # The pages' common revision was compacted away on the way: begin again at the present one.
        return await self._pages(selection, read)

    def watch_lines(self, selection: Request, revision: str) -> AsyncGenerator[bytes]:
        """A watch's raw lines, bookmarks and all."""
        asked = requests.watch(selection, revision, self.limits.watch)
        return self.lines(asked, silence=self.limits.watch + self.limits.silence)

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        """An answer line by line, as it comes; given up after so many seconds of silence."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect, sock_read=silence)
        splitter = Splitter()
        answer = await self._insist(request, partial(self._open, request, patience))
        try:
            with self._in_words(request):
                async for chunk in answer.content.iter_any():
                    for line in splitter.feed(chunk):
                        yield line
        finally:
            _hang_up(answer)
        if rest := splitter.end():
            yield rest

    async def _pages(self, selection: Request, read: Callable[[msgspec.Raw], T]) -> Listing:
        items: list[T] = []
        token = ""
        while True:
            body = await self._send(requests.page(selection, self.limits.page, token))
            page = _page.decode(body)
            items += [read(item) for item in page.items or ()]
            token = page.metadata.continue_
            if not token:
                return Listing(items, page.metadata.resource_version)

    async def _object(self, request: Request) -> Object:
        decoded: Object = msgspec.json.decode(await self._send(request))
        return decoded

    async def _send(self, request: Request) -> bytes:
        patience = aiohttp.ClientTimeout(total=self.limits.whole, sock_connect=self.limits.connect)

        async def once() -> bytes:
            async with await self._open(request, patience) as answer:
                with self._in_words(request):
                    return await answer.read()

        return await self._insist(request, once)

    async def _insist(self, request: Request, once: Callable[[], Awaitable[T]]) -> T:
        """Do it as often as that is safe and may help."""
        attempt = 0
        while True:
            try:
                return await once()
            except ApiError as error:
                attempt += 1
                wait = pause(request, error, attempt, random.random())  # noqa: S311  (it spreads load, it guards nothing)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _open(self, request: Request, patience: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send it, and wait until a good answer begins."""
        headers = {"Content-Type": request.content} if request.body else {}
        if token := self.access.bearer():
            headers["Authorization"] = f"Bearer {token}"
        with self._in_words(request):
            answer = await self._session.request(
                request.method,
                URL(self.access.server + request.path, encoded=True),
                params=request.query,
                data=request.body or None,
                headers=headers,
                timeout=patience,
                server_hostname=self.access.server_name or None,
            )
            if answer.status < 300:
                return answer
            async with answer:
                raise error_of(
                    await answer.read(),
                    status=answer.status,
                    about=request.about,
                    retry_after=answer.headers.get("Retry-After", ""),
                )

    @contextmanager
    def _in_words(self, request: Request) -> Generator[None]:
        """Whatever breaks below HTTP is Unreachable, and says why."""
        try:
            yield
        except TimeoutError as error:
            raise Unreachable(self.access.server, "it took too long", about=request.about) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(self.access.server, _words(error), about=request.about) from error


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """Leave an answer that is not at its end: a polite goodbye by TLS would wait until the server has noticed."""
    if answer.connection and answer.connection.transport:
        answer.connection.transport.abort()
    answer.close()


def _words(error: Exception) -> str:
    """What went wrong below HTTP, without the client's own vocabulary."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return str(cause) or type(cause).__name__
