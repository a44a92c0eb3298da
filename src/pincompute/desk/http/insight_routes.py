"""Endpoints that insight answers: lists over all projects of the caller, the stream of changes, and histories."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec
from aiohttp import web

from pincompute.admission.authorization import Permission, highest_role
from pincompute.api.history import HistoryPage, HistoryQuery, HistoryRequest, LastState
from pincompute.api.identity import Identity
from pincompute.api.insight import (
    NODES,
    RELOAD,
    REPLICAS,
    WORKLOADS,
    ChangeFrame,
    ChangesQuery,
    ChangesRequest,
    Collection,
    EventData,
    InsightQuery,
    ListRequest,
    NodePage,
    ReplicaPage,
    WorkloadPage,
)
from pincompute.base.aio import run_until_first_completes
from pincompute.base.problem import Refused
from pincompute.base.reasons import DOCUMENT_INVALID, INSIGHT_MISSING, INSIGHT_UNAVAILABLE, WORKLOAD_UNKNOWN
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import ACCESS_REVOKED, AUTHENTICATED, CALLER, requires
from pincompute.desk.http.endpoint import ResponseMode, endpoint
from pincompute.desk.http.path_parameters import path_word
from pincompute.desk.http.requests import parse_query, project_and_name
from pincompute.desk.http.responses import json_response

_INVALID_LIST = "invalid list"
_INVALID_HISTORY = "invalid page of a history"
_LIST_REASONS = (DOCUMENT_INVALID, INSIGHT_MISSING, INSIGHT_UNAVAILABLE)
_HEARTBEAT = b": heartbeat\n\n"


class InsightRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self, workload: str) -> list[web.RouteDef]:
        return [
            web.get("/v1/workloads", self.workloads),
            web.get("/v1/replicas", self.replicas),
            web.get("/v1/nodes", self.nodes),
            web.get("/v1/changes", self.stream),
            web.get("/v1/projects/{project}/history", self.of_project),
            web.get(f"{workload}/history", self.history),
            web.get(f"{workload}/last-state", self.last_state),
        ]

    @requires(AUTHENTICATED)
    @endpoint(response=WorkloadPage, query=InsightQuery, reasons=_LIST_REASONS)
    async def workloads(self, request: web.Request) -> web.StreamResponse:
        """Workloads of all projects that the caller may view."""
        return await self._page(request, WORKLOADS)

    @requires(AUTHENTICATED)
    @endpoint(response=ReplicaPage, query=InsightQuery, reasons=_LIST_REASONS)
    async def replicas(self, request: web.Request) -> web.StreamResponse:
        """Replicas and tasks of all projects that the caller may view."""
        return await self._page(request, REPLICAS)

    @requires(Permission.ADMINISTER)
    @endpoint(response=NodePage, query=InsightQuery, reasons=_LIST_REASONS)
    async def nodes(self, request: web.Request) -> web.StreamResponse:
        """Nodes of all clusters."""
        return await self._page(request, NODES)

    async def _page(self, request: web.Request, collection: Collection) -> web.StreamResponse:
        query = parse_query(request, InsightQuery, _INVALID_LIST)
        asked = ListRequest(projects=await self._visible(request[CALLER]), query=query)
        answer = await self._desk.required_insight.page(collection, asked, request.headers.get("If-None-Match", ""))
        # What a caller may see must not be stored for another one.
        headers = {"ETag": answer.etag, "Cache-Control": "private, no-cache"}
        if answer.not_modified:
            return web.Response(status=304, headers=headers)
        return web.Response(body=answer.body, content_type="application/json", headers=headers)

    @requires(AUTHENTICATED)
    @endpoint(response=EventData, mode=ResponseMode.EVENTS, query=ChangesQuery, reasons=_LIST_REASONS)
    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Changes of workloads and replicas in all projects that the caller may view."""
        query = parse_query(request, ChangesQuery, "invalid position")
        after = request.headers.get("Last-Event-ID", "")[:64] or query.after
        caller = request[CALLER]
        projects = await self._visible(caller)
        frames = self._desk.required_insight.changes(ChangesRequest(projects=projects, after=after))
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        async with aclosing(frames):
            # A refusal before the first frame is a response of its own; it is a heartbeat, which comes at once.
            await anext(frames)
            with suppress(ConnectionResetError, Refused):
                await response.prepare(request)
                await response.write(_HEARTBEAT)
                relay = self._relay(response, frames, caller, projects)
                await run_until_first_completes(relay, request[ACCESS_REVOKED]())
        return response

    async def _relay(
        self,
        response: web.StreamResponse,
        frames: AsyncGenerator[ChangeFrame],
        caller: Identity,
        projects: list[str] | None,
    ) -> None:
        """Relays frames of projects that the caller may still view. A new project ends the stream with `reload`."""
        async for frame in frames:
            if not frame.event:
                if await self._visible(caller) != projects:
                    await response.write(_event(ChangeFrame(id=frame.id, event=RELOAD)))
                    return
                await response.write(_HEARTBEAT)
            elif not frame.project or projects is None or await self._may_view(caller, frame.project):
                await response.write(_event(frame))

    async def _visible(self, caller: Identity) -> list[str] | None:
        """Names of the projects that the caller may view; None for all."""
        if caller.is_admin:
            return None
        return sorted(each.project for each in await self._desk.list_projects(caller))

    async def _may_view(self, caller: Identity, name: str) -> bool:
        project = (await self._desk.platform.cached_projects()).get(name)
        return project is not None and highest_role(caller, project) is not None

    @requires(Permission.VIEW)
    @endpoint(response=HistoryPage, query=HistoryQuery, reasons=_LIST_REASONS)
    async def of_project(self, request: web.Request) -> web.StreamResponse:
        """A page of the history of all workloads of a project, newest entry first."""
        query = parse_query(request, HistoryQuery, _INVALID_HISTORY)
        asked = HistoryRequest(project=path_word(request, "project"), query=query)
        return json_response(await self._desk.read_history(asked))

    @requires(Permission.VIEW)
    @endpoint(response=HistoryPage, query=HistoryQuery, reasons=(*_LIST_REASONS, WORKLOAD_UNKNOWN))
    async def history(self, request: web.Request) -> web.StreamResponse:
        """A page of the history of a workload, also of a deleted one, newest entry first."""
        project, name = project_and_name(request)
        query = parse_query(request, HistoryQuery, _INVALID_HISTORY)
        return json_response(await self._desk.read_history(HistoryRequest(project=project, workload=name, query=query)))

    @requires(Permission.VIEW)
    @endpoint(response=LastState, reasons=(INSIGHT_MISSING, INSIGHT_UNAVAILABLE, WORKLOAD_UNKNOWN))
    async def last_state(self, request: web.Request) -> web.StreamResponse:
        """The last known state of a workload, also of a deleted one."""
        return json_response(await self._desk.read_last_state(*project_and_name(request)))


def _event(frame: ChangeFrame) -> bytes:
    """A server-sent event. JSON has no line breaks, so that data cannot begin an event of its own."""
    data = msgspec.json.encode(frame.data)
    return f"id: {frame.id}\nevent: {frame.event}\ndata: ".encode() + data + b"\n\n"
