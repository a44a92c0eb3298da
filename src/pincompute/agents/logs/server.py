"""The store's face: shippers bring batches and ask how far they are; readers ask for lives and their lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.logs.callers import Caller
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.pods import Known
from pincompute.agents.logs.store import Store
from pincompute.api.logs import Life
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
            raise web.HTTPForbidden(text="only the desk may read")


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
