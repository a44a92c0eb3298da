"""The client: everything that can be asked of one API server, for any kind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from pincompute.base.clock import Clock, SystemClock
from pincompute.kube import execution, forwarding
from pincompute.kube import request as requests
from pincompute.kube.access import Access
from pincompute.kube.errors import Gone, unreadable
from pincompute.kube.execution import Execution, execute
from pincompute.kube.forwarding import Forwarding, forward
from pincompute.kube.request import Request, Style, Target
from pincompute.kube.resource import PODS, Object, Resource
from pincompute.kube.sender import Carrier, Chance, Sender, Traffic
from pincompute.kube.transport import USUAL, Limits, Transport
from pincompute.kube.watch import BOOKMARK, DELETED, Event, told

T = TypeVar("T")
_REST = 0.2


class Listing(NamedTuple):
    """All objects that were asked for, as they were at one revision."""

    items: list[Any]
    revision: str


class Page(NamedTuple):
    """Some of them, not yet read."""

    items: list[msgspec.Raw]
    revision: str


class _PageMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _PageMeta
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page)
_object = msgspec.json.Decoder(Object)


class Client:
    """Used as `async with Client(access, agent="pin-operator") as client`."""

    def __init__(  # noqa: PLR0913  (the last three are by name)
        self,
        access: Access,
        agent: str,
        limits: Limits = USUAL,
        *,
        transport: Carrier | None = None,
        clock: Clock | None = None,
        chance: Chance = random.random,
    ) -> None:
        self.access = access
        self.limits = limits
        self.clock = clock or SystemClock()
        self.chance = chance
        self.streams = limits.stream
        """Whether this server tells by a watch what is there already; found out by whoever asks first."""
        # Only a real connection carries messages both ways.
        self._dialer = Transport(access, agent, limits, self.clock)
        self._sender = Sender(transport or self._dialer, self.clock, chance)

    async def __aenter__(self) -> Self:
        await self._sender.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._sender.__aexit__(kind, error, trace)

    @property
    def traffic(self) -> Traffic:
        """What was asked so far, and how it was answered."""
        return self._sender.traffic

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

    async def create(
        self,
        resource: Resource,
        object: Object,  # noqa: A002
        *,
        manager: str,
        dry_run: bool = False,
    ) -> Object:
        return await self._object(requests.create(Target.of(resource, object), object, manager, dry_run=dry_run))

    async def apply(  # noqa: PLR0913  (they are the words of one sentence, most by name)
        self,
        object: Object,  # noqa: A002
        resource: Resource,
        *,
        manager: str,
        force: bool = True,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Make the fields that are named be so, and let go of those named last time and no more."""
        target = Target.of(resource, object, subresource)
        return await self._object(requests.apply(target, object, manager, force=force, dry_run=dry_run))

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
    ) -> Object | None:
        """With a uid, only that very object: Conflict, when another of its name stands there by now.

        What must be done before it goes leaves it there for a while, as it is then.
        """
        answer = await self._sender.send(requests.delete(Target(resource, name, namespace), uid, propagation))
        left = _object.decode(answer)
        return left if left.get("kind") == resource.kind else None

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

    async def follow(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        type: type[Any] | None = None,  # noqa: A002
    ) -> AsyncGenerator[Any]:
        """One object as it is now, and then after each change, until it is gone."""
        while True:
            try:
                events = self.watch(resource, namespace, fields=f"metadata.name={name}", type=type)
                async with aclosing(events):
                    async for event in events:
                        if event.type == DELETED:
                            return
                        yield event.object
            except Gone:
                # The watch begins again with what is there.
                await asyncio.sleep(_REST)

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
        """A container's lines, without their line breaks; with `follow`, for as long as it prints."""
        asked = requests.logs(
            Target(PODS, pod, namespace),
            container=container, tail=tail, follow=follow, previous=previous, since=since, timestamps=timestamps,
        )  # fmt: skip
        async with aclosing(self._sender.lines(asked, silence=None if follow else self.limits.whole)) as lines:
            async for line in lines:
                yield line.decode("utf-8", "replace")

    @asynccontextmanager
    async def execute(  # noqa: PLR0913
        self,
        namespace: str,
        pod: str,
        command: Sequence[str],
        *,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncGenerator[Execution]:
        """Run a program in a container; leaving ends the connection, and with it the program's terminal."""
        asked = execute(namespace, pod, command, container=container, stdin=stdin, tty=tty)
        async with self._dialer.dial(asked, execution.PROTOCOL) as socket:
            yield Execution(socket, asked.about, self.access.server)

    @asynccontextmanager
    async def forward(self, namespace: str, pod: str, port: int) -> AsyncGenerator[Forwarding]:
        """A connection to a port of a pod; one for each that is wanted."""
        asked = forward(namespace, pod, port)
        async with self._dialer.dial(asked, forwarding.PROTOCOL) as socket:
            yield Forwarding(socket, asked.about, self.access.server)

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
        return await self._sender.send(Request(method, path, query or {}, body, content, path, method.lower()))

    async def collect(self, selection: Request, read: Callable[[msgspec.Raw], T]) -> Listing:
        """Every object that matches, each read as its page comes in, so that no more than one page is held unread."""
        for _ in range(2):
            with suppress(Gone):
                return await self._all(selection, read)
            # The pages' common revision was compacted away on the way: begin again at the present one.
        return await self._all(selection, read)

    async def pages(self, selection: Request) -> AsyncGenerator[Page]:
        """Page by page; Gone, where their common revision was compacted away on the way."""
        token = ""
        while True:
            body = await self._sender.send(requests.page(selection, self.limits.page, token))
            page = _decoded(_page, body, selection)
            token = page.metadata.continue_
            yield Page(page.items or [], page.metadata.resource_version)
            if not token:
                return

    def watch_lines(self, selection: Request, revision: str) -> AsyncGenerator[bytes]:
        """A watch's raw lines, bookmarks and all."""
        asked = requests.watch(selection, revision, self.limits.watch)
        return self._sender.lines(asked, silence=self.limits.watch + self.limits.silence)

    def stream_lines(self, selection: Request) -> AsyncGenerator[bytes]:
        """As a watch's, with all that is there before."""
        asked = requests.stream(selection, self.limits.watch)
        return self._sender.lines(asked, silence=self.limits.watch + self.limits.silence)

    async def _all(self, selection: Request, read: Callable[[msgspec.Raw], T]) -> Listing:
        items: list[T] = []
        revision = ""
        async with aclosing(self.pages(selection)) as pages:
            async for page in pages:
                items += [read(item) for item in page.items]
                revision = page.revision
        return Listing(items, revision)

    async def _object(self, request: Request) -> Object:
        return _decoded(_object, await self._sender.send(request), request)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes, request: Request) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise unreadable(body, request.about) from error
