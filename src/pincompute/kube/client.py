"""Client of one API server, for resources of any kind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from pincompute.base.clock import Clock, SystemClock
from pincompute.kube import exec_stream, port_forward, request as requests
from pincompute.kube.access import Access
from pincompute.kube.errors import ApiError, Gone, invalid_response
from pincompute.kube.exec_stream import ExecStream, exec_request
from pincompute.kube.object_reader import Page
from pincompute.kube.port_forward import PortForward, port_forward_request
from pincompute.kube.request import PatchStyle, Request, Target
from pincompute.kube.resource import PODS, Object, Resource
from pincompute.kube.retrying_transport import BaseTransport, RandomFraction, RequestStats, RetryingTransport
from pincompute.kube.transport import DEFAULT_LIMITS, ClientLimits, HttpTransport
from pincompute.kube.watch import BOOKMARK, DELETED, Event, parse_event

T = TypeVar("T")
_FOLLOW_RETRY_S = 0.2
_MAX_FOLLOW_FAILURES = 5
"""Internal errors in a row, after which a watch is not started again."""
_INTERNAL_ERROR = 500


class ListResult(NamedTuple):
    """All listed objects, as they were at one resourceVersion."""

    items: list[Any]
    resource_version: str


_object_decoder = msgspec.json.Decoder(Object)


class Client:
    """Used as `async with Client(access, agent="pin-operator") as client`."""

    def __init__(  # noqa: PLR0913  (the last three are by name)
        self,
        access: Access,
        agent: str,
        limits: ClientLimits = DEFAULT_LIMITS,
        *,
        transport: BaseTransport | None = None,
        clock: Clock | None = None,
        chance: RandomFraction = random.random,
    ) -> None:
        self.access = access
        self.limits = limits
        self.clock = clock or SystemClock()
        self.random = chance
        self.supports_watch_list = limits.watch_list
        """Whether the server supports watches with initial events; the first informer that tries one finds out."""
        # Websockets need a real connection, also where a test replaces the transport.
        self._http = HttpTransport(access, agent, limits, self.clock)
        self._transport = RetryingTransport(transport or self._http, self.clock, chance)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    @property
    def request_stats(self) -> RequestStats:
        """Counters of the requests so far and their responses."""
        return self._transport.request_stats

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._send_for_object(requests.get(Target(resource, name, namespace)))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        type: type[Any] | None = None,  # noqa: A002
    ) -> ListResult:
        """Lists every object that matches, as dicts or as the given type."""
        selection = requests.select(resource, namespace, labels=labels, fields=fields)
        decoder: msgspec.json.Decoder[Page[Any]] = msgspec.json.Decoder(Page[type or dict[str, Any]])
        for _ in range(2):
            with suppress(Gone):
                return await self._list_all(selection, decoder)
            # etcd compacted the list's resourceVersion between two pages: list again at the current one.
        return await self._list_all(selection, decoder)

    async def create(
        self,
        resource: Resource,
        object: Object,  # noqa: A002
        *,
        manager: str,
        dry_run: bool = False,
    ) -> Object:
        return await self._send_for_object(
            requests.create(Target.of(resource, object), object, manager, dry_run=dry_run)
        )

    async def apply(  # noqa: PLR0913  (most are keyword-only)
        self,
        object: Object,  # noqa: A002
        resource: Resource,
        *,
        manager: str,
        force: bool = True,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: sets the given fields, and gives up the fields of the last apply that are missing now."""
        target = Target.of(resource, object, subresource)
        return await self._send_for_object(requests.apply(target, object, manager, force=force, dry_run=dry_run))

    async def replace(
        self,
        object: Object,  # noqa: A002
        resource: Resource,
        *,
        manager: str,
        subresource: str = "",
    ) -> Object:
        """Writes a whole object, or a whole subresource: Conflict if it no longer has the given resourceVersion."""
        return await self._send_for_object(requests.replace(Target.of(resource, object, subresource), object, manager))

    async def patch(  # noqa: PLR0913  (most are keyword-only)
        self,
        resource: Resource,
        name: str,
        namespace: str,
        body: Any,
        *,
        style: PatchStyle,
        manager: str,
        subresource: str = "",
    ) -> Object:
        target = Target(resource, name, namespace, subresource)
        return await self._send_for_object(requests.patch(target, body, style, manager))

    async def delete(  # noqa: PLR0913
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
    ) -> Object | None:
        """Deletes an object; with a uid only that object: Conflict if another one has the name now.

        With a resourceVersion also only if the object has not been written since.

        Returns the object if it still exists, because finalizers or a grace period delay its deletion.
        """
        body = await self._transport.send(
            requests.delete(Target(resource, name, namespace), uid, propagation, resource_version)
        )
        remaining = _object_decoder.decode(body)
        return remaining if remaining.get("kind") == resource.kind else None

    async def watch(  # noqa: PLR0913
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        labels: str = "",
        fields: str = "",
        type: type[Any] | None = None,  # noqa: A002
    ) -> AsyncGenerator[Event[Any]]:
        """Yields the changes after a resourceVersion, until the server ends the watch.

        Without a resourceVersion the existing objects come first, as ADDED.
        """
        decoder = msgspec.json.Decoder(type or dict[str, Any])
        selection = requests.select(resource, namespace, labels=labels, fields=fields)
        async with aclosing(self.watch_lines(selection, resource_version)) as lines:
            async for line in lines:
                event = parse_event(line, selection.about)
                if event.type != BOOKMARK:
                    yield Event(event.type, decoder.decode(event.object))

    async def follow(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        type: type[Any] | None = None,  # noqa: A002
    ) -> AsyncGenerator[Any]:
        """Yields one object as it is now, and again after each change, until it is deleted.

        A server may end a watch with an internal error, as it does when etcd compacts its history meanwhile.
        """
        failures = 0
        while True:
            try:
                events = self.watch(resource, namespace, fields=f"metadata.name={name}", type=type)
                async with aclosing(events):
                    async for event in events:
                        if event.type == DELETED:
                            return
                        failures = 0
                        yield event.object
            except ApiError as error:
                failures += 1
                if not isinstance(error, Gone) and (error.status != _INTERNAL_ERROR or failures > _MAX_FOLLOW_FAILURES):
                    raise
                # The next watch starts with the current object.
                await asyncio.sleep(_FOLLOW_RETRY_S)

    async def logs(  # noqa: PLR0913
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        tail: int | None = None,
        follow: bool = False,
        previous: bool = False,
        since: str = "",
        timestamps: bool = False,
    ) -> AsyncGenerator[str]:
        """Yields a container's lines without line breaks; with `follow` until the container ends."""
        request = requests.logs(
            Target(PODS, pod, namespace),
            container=container, tail=tail, follow=follow, previous=previous, since=since, timestamps=timestamps,
        )  # fmt: skip
        async with aclosing(
            self._transport.lines(request, silence=None if follow else self.limits.request_timeout_s)
        ) as lines:
            async for line in lines:
                yield line.decode("utf-8", "replace")

    @asynccontextmanager
    async def exec(  # noqa: PLR0913
        self,
        namespace: str,
        pod: str,
        command: Sequence[str],
        *,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncGenerator[ExecStream]:
        """Runs a program in a container. Leaving the block closes the connection, and with it the terminal."""
        request = exec_request(namespace, pod, command, container=container, stdin=stdin, tty=tty)
        async with self._http.connect_websocket(request, exec_stream.EXEC_PROTOCOL) as socket:
            yield ExecStream(socket, request.about, self.access.server)

    @asynccontextmanager
    async def port_forward(self, namespace: str, pod: str, port: int) -> AsyncGenerator[PortForward]:
        """Opens one connection to a port of a pod."""
        request = port_forward_request(namespace, pod, port)
        async with self._http.connect_websocket(request, port_forward.PORT_FORWARD_PROTOCOL) as socket:
            yield PortForward(socket, request.about, self.access.server)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        content: str = requests.JSON_CONTENT_TYPE,
    ) -> bytes:
        """Sends any other request, such as `raw("GET", "/readyz")`, and returns the response body."""
        return await self._transport.send(Request(method, path, query or {}, body, content, path, method.lower()))

    async def list_pages(self, selection: Request, decode: Callable[[bytes], Page[T]]) -> AsyncGenerator[Page[T]]:
        """Yields page by page, each decoded as it arrives: one page at most is held undecoded.

        Raises Gone if etcd compacts the list's resourceVersion in between.
        """
        token = ""
        while True:
            page = decode(await self._transport.send(requests.page(selection, self.limits.page_size, token)))
            yield page
            token = page.metadata.continue_
            if not token:
                return

    def watch_lines(self, selection: Request, resource_version: str) -> AsyncGenerator[bytes]:
        """Yields the raw lines of a watch, including bookmarks."""
        request = requests.watch(selection, resource_version, self.limits.watch_timeout_s)
        return self._transport.lines(request, silence=self.limits.watch_timeout_s + self.limits.watch_grace_s)

    def watch_list_lines(self, selection: Request) -> AsyncGenerator[bytes]:
        """Yields the raw lines of a watch that starts with the existing objects."""
        request = requests.watch_list(selection, self.limits.watch_timeout_s)
        return self._transport.lines(request, silence=self.limits.watch_timeout_s + self.limits.watch_grace_s)

    async def _list_all(self, selection: Request, decoder: msgspec.json.Decoder[Page[Any]]) -> ListResult:
        items: list[Any] = []
        resource_version = ""
        decode = partial(_decode, decoder, request=selection)
        async with aclosing(self.list_pages(selection, decode)) as pages:
            async for page in pages:
                items += page.items or ()
                resource_version = page.metadata.resource_version
        return ListResult(items, resource_version)

    async def _send_for_object(self, request: Request) -> Object:
        return _decode(_object_decoder, await self._transport.send(request), request)


def _decode(decoder: msgspec.json.Decoder[T], body: bytes, request: Request) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise invalid_response(body, request.about) from error
