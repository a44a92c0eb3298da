"""The store's face: shippers bring batches and ask how far they are; readers ask for lives and their lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.logs.callers import Caller
from pincompute.agents.logs.hearers import Heard
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.pods import Known
from pincompute.agents.logs.store import Store
from pincompute.api.logs import HEARTBEAT, Life
from pincompute.base.problem import Refused
from pincompute.base.reasons import LOGS_FULL

MOST_BYTES = 16 << 20
"""Of a batch: every line of one is longer by the time that stands before it."""

log = structlog.get_logger()


class TooEarly(web.HTTPClientError):
    status_code = 425


_Who = Callable[[web.Request], Caller]


def application(store: Store, who: _Who, readers: frozenset[str]) -> web.Application:
    routes = Routes(store, who, readers)
    app = web.Application(middlewares=[_told], client_max_size=MOST_BYTES)
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/v1/positions", routes.position),
            web.post("/v1/batches", routes.take),
            web.get("/v1/lives", routes.lives),
            web.get("/v1/lines", routes.lines),
            web.get("/v1/fresh", routes.fresh),
        ]
    )
    return app


class Routes:
    def __init__(self, store: Store, who: _Who, readers: frozenset[str]) -> None:
        self._store = store
        self._who = who
        self._readers = readers

    async def position(self, request: web.Request) -> web.Response:
        stream = _stream(request.query)
        return _json(self._store.position(stream, self._known(request, stream)))

    async def take(self, request: web.Request) -> web.Response:
        query = request.query
        stream = _stream(query)
        known = self._known(request, stream)
        segment, mark = int(query["segment"]), query["mark"]
        if not mark.isprintable():
            raise ValueError("the mark cannot be printed")
        start, end = Position(segment, int(query["start"])), Position(segment, int(query["end"]), mark)
        taken, position = self._store.take(Batch(stream, start, end, await request.read()), known)
        return _json(position, 200 if taken else 409)

    async def lives(self, request: web.Request) -> web.Response:
        self._must_read(request)
        return _json(self._store.lives(request.query["project"], request.query["workload"]))

    async def lines(self, request: web.Request) -> web.Response:
        self._must_read(request)
        query = request.query
        life = Life(pod=query["pod"], uid=query["uid"], container=query["container"], restart=int(query["restart"]))
        tail, since = int(query["tail"]), int(query["since"])
        return _json(self._store.entries(query["project"], query["workload"], life, tail=tail, since=since))

    async def fresh(self, request: web.Request) -> web.StreamResponse:
        """What is written into files from now on, a line of JSON a batch; between them empty ones, by which a reader
        tells silence from a store that is lost."""
        self._must_read(request)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        hearers, query = self._store.hearers, request.query
        # Whoever asked may leave at any moment, and that is nothing to tell anybody.
        with hearers.listening(query["project"], query["workload"]) as heard, suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write(b"\n")
            await _write(response, heard)
        return response

    def _known(self, request: web.Request, stream: Stream) -> Known:
        """Whose pod it is, and that the caller may write of it."""
        known = self._store.pods.get(stream.uid)
        if known is None:
            # It may only just have begun, and be told of in the next moment.
            raise TooEarly(text="this pod is not known yet")
        if not known.workload:
            raise web.HTTPNotFound(text="this pod is of no workload")
        if (known.project, known.name) != (stream.project, stream.pod) or not self._who(request).may_write(known):
            raise web.HTTPForbidden(text="only its own node and its own sidecar may write of a pod")
        return known

    def _must_read(self, request: web.Request) -> None:
        if self._who(request).user not in self._readers:
            raise web.HTTPForbidden(text="a pod may not read")


async def _write(response: web.StreamResponse, heard: Heard) -> None:
    while True:
        try:
            fresh = await asyncio.wait_for(heard.get(), HEARTBEAT)
        except TimeoutError:
            await response.write(b"\n")
        else:
            if fresh is None:
                return
            await response.write(msgspec.json.encode(fresh) + b"\n")


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _stream(query: Mapping[str, str]) -> Stream:
    return Stream(query["project"], query["pod"], query["uid"], query["container"], int(query["restart"]))


def _json(value: object, status: int = 200) -> web.Response:
    if isinstance(value, Position):
        value = value._asdict()
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


@web.middleware
async def _told(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        first = refused.problems[0]
        if first.reason is LOGS_FULL:
            log.error("the store is full", why=first.note)
        return web.Response(text=refused.text(), status=first.reason.http)
    except (KeyError, ValueError) as error:
        return web.Response(text=f"the request cannot be read: {error}", status=400)
    except OSError as error:
        log.error("the store cannot be read", why=error.strerror or str(error))
        return web.Response(text=f"the store cannot be read: {error.strerror}", status=503)
