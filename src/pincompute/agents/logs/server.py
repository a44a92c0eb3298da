"""HTTP API of the log store: positions and batches for shippers, container runs and lines for readers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.agents.listeners import Caller
from pincompute.agents.logs.intake import Intake
from pincompute.agents.logs.metrics import log_store_metrics
from pincompute.agents.logs.pods import PodRecord
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.store import LogStore
from pincompute.agents.logs.subscribers import Subscription
from pincompute.api.logs import HEARTBEAT_INTERVAL_S, ContainerRun
from pincompute.api.names import LOG_SHIPPER, METRICS_READER
from pincompute.base.metrics_page import CONTENT_TYPE, exposition
from pincompute.base.problem import Refused
from pincompute.base.reasons import LOGS_FULL

MAX_BODY_BYTES = 8 << 20
"""Size limit of a batch. It exceeds the shipper's read size, because each line gets a timestamp."""
MAX_MARK_CHARS = 200
MAX_NUMBER = 1 << 62
"""Limit of the numbers in a position."""
WRITE_TIMEOUT_S = 30.0
"""A follower that accepts no data for this long is disconnected."""

log = structlog.get_logger()


class TooEarly(web.HTTPClientError):
    status_code = 425


_Authenticate = Callable[[web.Request], Caller]


def build_app(store: LogStore, authenticate: _Authenticate, readers: frozenset[str]) -> web.Application:
    """Application of one listener, which authenticates callers in its own way."""
    routes = Routes(store, authenticate, readers)
    app = web.Application(middlewares=[_error_middleware], client_max_size=MAX_BODY_BYTES)
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/metrics", routes.metrics),
            web.get("/v1/positions", routes.position),
            web.post("/v1/batches", routes.append_batch),
            web.get("/v1/lives", routes.container_runs),
            web.get("/v1/lines", routes.lines),
            web.get("/v1/fresh", routes.follow_lines),
        ]
    )
    return app


class Routes:
    """Request handlers."""

    def __init__(self, store: LogStore, authenticate: _Authenticate, readers: frozenset[str]) -> None:
        self._store = store
        self._authenticate = authenticate
        self._readers = readers
        self._intake = Intake()

    async def metrics(self, request: web.Request) -> web.Response:
        if self._authenticate(request).user != METRICS_READER:
            raise web.HTTPForbidden(text=f"only {METRICS_READER} may read metrics")
        return web.Response(
            body=exposition(partial(log_store_metrics, self._store)), headers={"Content-Type": CONTENT_TYPE}
        )

    async def position(self, request: web.Request) -> web.Response:
        stream = _stream(request.query)
        return _json(self._store.position(stream, self._authorize_write(request, stream)))

    async def append_batch(self, request: web.Request) -> web.Response:
        query = request.query
        stream = _stream(query)
        pod = self._authorize_write(request, stream)
        segment, mark = _number(query["segment"]), query["mark"]
        if not mark.isprintable() or len(mark) > MAX_MARK_CHARS:
            raise ValueError(f"mark must be printable and have at most {MAX_MARK_CHARS} characters")
        start, end = Position(segment, _number(query["start"])), Position(segment, _number(query["end"]), mark)
        async with self._intake.slot(pod.project if stream.is_file else ""):
            body = await request.read()
            # The pod may have been deleted, and its project with it, while the body was received.
            stored, position = self._store.append(
                Batch(stream, start, end, body), self._authorize_write(request, stream)
            )
        return _json(position, 200 if stored else 409)

    async def container_runs(self, request: web.Request) -> web.Response:
        self._authorize_read(request)
        return _json(self._store.container_runs(request.query["project"], request.query["workload"]))

    async def lines(self, request: web.Request) -> web.Response:
        self._authorize_read(request)
        query = request.query
        run = ContainerRun(
            pod=query["pod"], uid=query["uid"], container=query["container"], restart=int(query["restart"])
        )
        limits = {name: _number(query[name]) for name in ("tail", "since", "max_bytes") if name in query}
        return _json(self._store.read_entries(query["project"], query["workload"], run, **limits))

    async def follow_lines(self, request: web.Request) -> web.StreamResponse:
        """Streams new lines of volume files, one line of JSON per batch.

        Empty lines are heartbeats, by which a reader distinguishes a quiet workload from a lost store.
        """
        self._authorize_read(request)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        subscribers, query = self._store.subscribers, request.query
        # A reader that disconnects is no error.
        with subscribers.subscribe(query["project"], query["workload"]) as batches, suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write(b"\n")
            try:
                await _write_batches(response, batches)
            except TimeoutError:
                log.warning("log follower dropped", project=query["project"], workload=query["workload"])
                assert request.transport is not None
                request.transport.abort()
        return response

    def _authorize_write(self, request: web.Request, stream: Stream) -> PodRecord:
        """Record of the stream's pod, if the caller may write its logs."""
        pod = self._store.pods.get(stream.uid)
        if pod is None:
            # The pod may be so new that our watch has not reported it yet.
            raise TooEarly(text="unknown pod")
        if not pod.workload:
            raise web.HTTPNotFound(text="the pod belongs to no workload")
        caller = self._authenticate(request)
        if (pod.project, pod.name) != (stream.project, stream.pod) or not _may_write(caller, pod, stream):
            raise web.HTTPForbidden(
                text="only its node may write the standard output of a pod, and only its sidecar its volume files"
            )
        if not self._store.namespaces.owns(pod):
            # The namespace may be so new that our watch has not reported it yet, or it was deleted.
            raise TooEarly(text="unknown project")
        if not stream.is_file and pod.containers and stream.container not in pod.containers:
            # An ephemeral container may be newer than the pod as our watch has reported it.
            raise TooEarly(text="unknown container")
        return pod

    def _authorize_read(self, request: web.Request) -> None:
        if self._authenticate(request).user not in self._readers:
            raise web.HTTPForbidden(text="pods must not read logs")


def _may_write(caller: Caller, pod: PodRecord, stream: Stream) -> bool:
    """Whether the caller may write a stream of the pod.

    A node ships standard output and error, and a pod its volume files: neither passes for the other.
    """
    if caller.user == LOG_SHIPPER:
        return not stream.is_file
    own = (caller.project, caller.workload) == (pod.project, pod.workload)
    return bool(caller.workload) and own and stream.is_file and stream.restart == 0


_HEARTBEAT = object()


async def _write_batches(response: web.StreamResponse, batches: Subscription) -> None:
    while True:
        try:
            batch: object = await asyncio.wait_for(batches.get(), HEARTBEAT_INTERVAL_S)
            line = msgspec.json.encode(batch) if batch else b""
        except TimeoutError:
            batch, line = _HEARTBEAT, b""
        if batch is None:
            return
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await response.write(line + b"\n")


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _stream(query: Mapping[str, str]) -> Stream:
    return Stream(query["project"], query["pod"], query["uid"], query["container"], _number(query["restart"]))


def _number(text: str) -> int:
    number = int(text) if len(text) < 20 else -1
    if not 0 <= number < MAX_NUMBER:
        raise ValueError(f"{text[:20]!r} must be a number from 0 to {MAX_NUMBER}")
    return number


def _json(value: object, status: int = 200) -> web.Response:
    if isinstance(value, Position):
        value = value._asdict()
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


@web.middleware
async def _error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns errors into responses that a shipper understands."""
    try:
        return await handler(request)
    except Refused as refused:
        first = refused.problems[0]
        if first.reason is LOGS_FULL:
            log.error("log store full", why=first.note)
        return web.Response(text=refused.text(), status=first.reason.http_status)
    except (KeyError, ValueError) as error:
        return web.Response(text=f"invalid request: {error}", status=400)
    except OSError as error:
        log.error("log store read failed", why=error.strerror or str(error))
        return web.Response(text=f"cannot read the stored logs: {error.strerror}", status=503)
