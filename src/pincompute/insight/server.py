"""HTTP API of insight, for the desk alone.

The desk has authenticated and authorized the caller, and states in each request what the caller may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TypeVar

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from sqlalchemy.exc import SQLAlchemyError

from pincompute.api.history import HistoryRequest, LastStateRequest
from pincompute.api.insight import (
    NODES,
    REPLICAS,
    WORKLOADS,
    ChangeFrame,
    ChangesRequest,
    Collection,
    InsightItem,
    ListRequest,
    NodeItem,
    ReplicaItem,
    SummariesRequest,
    WorkloadItem,
)
from pincompute.base.aio import beside_loop
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DOCUMENT_INVALID, FORBIDDEN, INSIGHT_BEHIND, INSIGHT_UNAVAILABLE, INTERNAL
from pincompute.insight.fleet import Fleet
from pincompute.insight.freshness import Freshness
from pincompute.insight.history_store import read_history, read_last_state
from pincompute.insight.pages import list_page

MAX_BODY_BYTES = 4 << 20
"""Size limit of a request: the names of 50,000 projects."""
HEARTBEAT_INTERVAL_S = 15.0
WRITE_TIMEOUT_S = 30.0
"""A reader of the stream that accepts no data for this long is disconnected."""
_MAX_QUICK_ITEMS = 2_000
"""Longer lists are searched beside the event loop."""
ITEM_TYPES: dict[Collection, type[InsightItem]] = {WORKLOADS: WorkloadItem, REPLICAS: ReplicaItem, NODES: NodeItem}
T = TypeVar("T")

log = structlog.get_logger()
Authenticate = Callable[[web.Request], bool]


def build_app(fleet: Fleet, freshness: Freshness, is_desk: Authenticate) -> web.Application:
    routes = Routes(fleet, freshness)
    app = web.Application(middlewares=[_problem_middleware, _desk_only(is_desk)], client_max_size=MAX_BODY_BYTES)
    app.add_routes(
        [
            web.get("/healthz", routes.healthz),
            web.get("/readyz", routes.readyz),
            web.post("/v1/summaries", routes.summaries),
            web.post("/v1/changes", routes.changes),
            web.post("/v1/history", routes.serve_history),
            web.post("/v1/last-state", routes.serve_last_state),
            *(web.post(f"/v1/{each}", partial(routes.list_items, each)) for each in ITEM_TYPES),
        ]
    )
    return app


class Routes:
    """Request handlers."""

    def __init__(self, fleet: Fleet, freshness: Freshness) -> None:
        self._fleet = fleet
        self._freshness = freshness

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """Whether the caches are filled."""
        if self._freshness.synced.is_set():
            return web.Response(text="ok\n")
        return web.Response(text="the caches are not filled yet\n", status=503)

    async def list_items(self, collection: Collection, request: web.Request) -> web.Response:
        self._require_synced()
        asked = await _parse_request(request, ListRequest)
        index, age_s = self._fleet.index_of(collection), self._freshness.age_s()
        # Read before the items: a change that comes meanwhile is then in the stream, too.
        position = self._fleet.stream.position
        version = position.partition("-")[0], index.version_of(asked.projects), asked
        tag = f'"{sha256(msgspec.json.encode(version)).hexdigest()[:32]}"'
        headers = {"Age": str(int(age_s)), "ETag": tag}
        if age_s == 0 and request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        projects = asked.projects
        if asked.query.project:
            projects = [each for each in (asked.query.project,) if projects is None or each in projects]
        items = list(index.in_projects(projects))
        make = partial(list_page, items, asked.query, ITEM_TYPES[collection])
        page = await beside_loop(make, large=len(items) > _MAX_QUICK_ITEMS)
        body: dict[str, object] = {
            "items": page.items,
            "total": page.total,
            "next": page.next,
            "position": position,
            "ageS": age_s,
        }
        if page.counts:
            body["counts"] = page.counts
        return _json_page(body, headers)

    async def summaries(self, request: web.Request) -> web.Response:
        """The workloads of a project, with all writes that the request names."""
        self._require_synced()
        asked = await _parse_request(request, SummariesRequest)
        if not await self._freshness.wait_for_writes(asked.project, asked.writes):
            what = f"insight has not received the last write to project {asked.project} yet"
            raise Refused(Problem(INSIGHT_BEHIND, what))
        headers = {"Age": str(int(self._freshness.age_s())), "Position": self._fleet.stream.position}
        items = list(self._fleet.workloads.in_projects([asked.project]))
        return _json_page(items, headers)

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """The stream of changes, one frame a line. Frames without an event are heartbeats."""
        asked = await _parse_request(request, ChangesRequest)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        # A reader that disconnects is no error.
        with self._fleet.stream.subscribe(asked.projects, asked.after) as frames, suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write(_heartbeat(self._fleet))
            while True:
                try:
                    taken = await asyncio.wait_for(frames.take(), HEARTBEAT_INTERVAL_S)
                except TimeoutError:
                    taken = [_heartbeat(self._fleet)]
                lines = b"".join(taken) if taken is not None else self._fleet.stream.reload_frame()
                try:
                    async with asyncio.timeout(WRITE_TIMEOUT_S):
                        await response.write(lines)
                except TimeoutError:
                    log.warning("stream reader dropped")
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                if taken is None:
                    break
        return response

    def _require_synced(self) -> None:
        """An incomplete list would look as if workloads were gone."""
        if not self._freshness.synced.is_set():
            raise Refused(Problem(INSIGHT_UNAVAILABLE, "insight has not listed the cluster yet"))

    async def serve_history(self, request: web.Request) -> web.Response:
        asked = await _parse_request(request, HistoryRequest)
        return _json_page(await self._fleet.history.read(partial(read_history, request=asked)))

    async def serve_last_state(self, request: web.Request) -> web.Response:
        """The last known state of a workload; null if there was none of that name."""
        asked = await _parse_request(request, LastStateRequest)
        return _json_page(await self._fleet.history.read(partial(read_last_state, request=asked)))


def _heartbeat(fleet: Fleet) -> bytes:
    return msgspec.json.encode(ChangeFrame(id=fleet.stream.position)) + b"\n"


def _desk_only(is_desk: Authenticate) -> Middleware:
    @web.middleware
    async def require_desk(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_desk(request):
            raise Refused(Problem(FORBIDDEN, "insight answers the desk only", next="ask the desk"))
        return await handler(request)

    return require_desk


@web.middleware
async def _problem_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        document = refused.json()
    except web.HTTPException:
        raise
    except SQLAlchemyError as error:
        log.error("history cannot be read", path=request.path, why=type(error).__name__)
        document = Refused(Problem(INTERNAL, "the history cannot be read: see the log of insight")).json()
    except Exception:
        # The exception may quote confidential values, so the response does not have it.
        log.exception("request failed", path=request.path)
        document = Refused(Problem(INTERNAL, "insight failed to handle this request: see its log")).json()
    return web.Response(
        body=msgspec.json.encode(document), status=document["status"], content_type="application/problem+json"
    )


async def _parse_request(request: web.Request, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.read(), type=type_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(Problem(DOCUMENT_INVALID, f"invalid request: {error}")) from error


def _json_page(value: object, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), headers=headers, content_type="application/json")
