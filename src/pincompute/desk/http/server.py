"""The HTTP API: JSON and problem+json, streams as one JSON document a line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.typedefs import Handler

from pincompute.admission.authorization import Permission
from pincompute.api.change import Change, Scale
from pincompute.api.documents import MAX_FILE_BYTES
from pincompute.api.logs import LogItem, LogQuery
from pincompute.api.preview import BuildPreview, ChangePlan, Preview
from pincompute.api.provenance import ProvenanceChain
from pincompute.api.receipt import SubmissionOutcome, SubmissionReceipt
from pincompute.api.unowned import UnownedObjects
from pincompute.api.usage import WorkloadUsage
from pincompute.api.whoami import SignIn, Whoami
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import ChangeResult, Diagnosis, WorkloadDetail
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.problem import Refused
from pincompute.base.reasons import (
    DOCUMENT_INVALID,
    KIND_UNKNOWN,
    NO_LOGS,
    REPLICA_UNKNOWN,
    REPOSITORY_FAILED,
    SET_REFUSED,
    STORE_FAILED,
    SUBMISSION_UNKNOWN,
    WORKLOAD_UNKNOWN,
)
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.authn.sessions import SessionAuth
from pincompute.desk.desk import Desk
from pincompute.desk.http.about_routes import AboutRoutes
from pincompute.desk.http.audit_routes import AuditRoutes
from pincompute.desk.http.auth import (
    AUTHENTICATED,
    CALLER,
    PUBLIC,
    auth_middlewares,
    protect_session_answers,
    requires,
)
from pincompute.desk.http.config_routes import ConfigRoutes
from pincompute.desk.http.endpoint import (
    BUILD_REASONS,
    CHANGE_REASONS,
    EXAMPLE_DOCUMENT,
    SUBMISSION_REASONS,
    WORKLOAD_YAML,
    WORKLOADS_YAML,
    ResponseMode,
    endpoint,
)
from pincompute.desk.http.errors import problem_middleware
from pincompute.desk.http.exec_routes import ExecRoutes
from pincompute.desk.http.fleet_routes import FleetRoutes
from pincompute.desk.http.health_routes import HealthRoutes
from pincompute.desk.http.infrastructure_routes import InfrastructureRoutes
from pincompute.desk.http.insight_routes import InsightRoutes
from pincompute.desk.http.page_routes import page_routes
from pincompute.desk.http.path_parameters import path_word
from pincompute.desk.http.project_routes import ProjectRoutes
from pincompute.desk.http.registry_routes import RegistryIssuer, RegistryRoutes
from pincompute.desk.http.request_counters import REQUEST_COUNTERS, RequestCounters, counting_middleware
from pincompute.desk.http.requests import (
    BreakGlassQuery,
    UidQuery,
    call_context,
    decode_body,
    parse_break_glass,
    parse_query,
    project_and_name,
    request_text,
)
from pincompute.desk.http.responses import (
    json_response,
    receipt_of,
    set_response,
    stream_response,
    submission_response,
    summaries_response,
)
from pincompute.desk.http.secret_routes import SecretRoutes
from pincompute.desk.http.session_routes import SessionRoutes
from pincompute.desk.limits.connections import ACTIVE_CONNECTIONS, track_active_connections
from pincompute.desk.limits.middleware import REQUEST_LIMITER, Limits, RequestLimiter, limit_middlewares
from pincompute.desk.request import ApplyChange, DeployBuild, DeployDocuments, RecordUnreadable, RemoveWorkload
from pincompute.desk.store.former_spellings import decode_change
from pincompute.desk.store.record import SubmissionRecord

if TYPE_CHECKING:
    from pincompute.desk.authn.code_flow import CodeFlow

FORMER_PATHS = {"/v1/fleet/copies": "/v1/fleet/pods"}
"""Paths of version 0.1, which its CLI asks for; served until version 0.3."""


def create_app(  # noqa: PLR0913  (its collaborators)
    desk: Desk,
    authenticator: Authenticator,
    sign_in: SignIn | None = None,
    limits: Limits | None = None,
    registry: RegistryIssuer | None = None,
    *,
    code_flow: CodeFlow | None = None,
) -> web.Application:
    """The whole API."""
    authenticator = authenticator.with_provider(SessionAuth(desk.sessions, desk.clock))
    authenticate, authorize = auth_middlewares(authenticator, desk.authorizer, desk.clock)
    counters, limiter = RequestCounters(), RequestLimiter(limits or Limits(), desk.clock)
    reject_or_admit, wait_turn = limit_middlewares(limiter)
    # Rate-limit first: a rejected request costs nothing. Authorization may ask the cluster, so it waits its turn.
    middlewares = [
        counting_middleware(counters, desk.clock),
        track_active_connections,
        problem_middleware,
        authenticate,
        reject_or_admit,
        shield_writes,
        wait_turn,
        authorize,
    ]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_FILE_BYTES)
    app[ACTIVE_CONNECTIONS] = set()
    app[REQUEST_COUNTERS], app[REQUEST_LIMITER] = counters, limiter
    app.on_response_prepare.append(protect_session_answers)
    routes = route_table(desk, sign_in or SignIn(), registry, SessionRoutes(desk, authenticator, code_flow))
    by_path = {route.path: route for route in routes}
    aliases = [web.get(former, by_path[path].handler) for former, path in FORMER_PATHS.items()]
    for route in (*routes, *aliases, *page_routes()):
        # Not `add_get`, which allows HEAD, too: a stream has no headers without a body.
        app.router.add_route(route.method, route.path, route.handler)
    return app


def route_table(
    desk: Desk, sign_in: SignIn, registry: RegistryIssuer | None = None, sessions: SessionRoutes | None = None
) -> list[web.RouteDef]:
    """Every documented route."""
    routes = WorkloadRoutes(desk, sign_in)
    workload = "/v1/projects/{project}/workloads/{name}"
    found = [
        *HealthRoutes(desk).route_table(),
        web.get("/v1/sign-in", routes.sign_in),
        web.get("/v1/whoami", routes.whoami),
        *ProjectRoutes(desk).route_table(),
        web.post("/v1/projects/{project}/submissions", routes.submit),
        web.get("/v1/projects/{project}/submissions/{id}", routes.submission),
        web.post("/v1/projects/{project}/sets", routes.submit_set),
        web.post("/v1/projects/{project}/builds/{name}/{version}/submissions", routes.deploy),
        web.get("/v1/projects/{project}/builds/{name}/{version}/plans", routes.plan_build),
        web.post("/v1/projects/{project}/plans", routes.plan),
        web.get("/v1/projects/{project}/workloads", routes.list),
        web.get("/v1/projects/{project}/unowned", routes.unowned),
        web.get("/v1/projects/{project}/usage", routes.usage),
        web.get("/v1/projects/{project}/changes", routes.watch),
        web.get(workload, routes.get),
        web.delete(workload, routes.delete),
        web.post(f"{workload}/changes", routes.change),
        web.post(f"{workload}/plans", routes.plan_change),
        web.get(f"{workload}/account", routes.account),
        web.get(f"{workload}/provenance", routes.provenance),
        web.get(f"{workload}/why", routes.why),
        web.get(f"{workload}/progress", routes.follow),
        web.get(f"{workload}/logs", routes.logs),
        *ExecRoutes(desk).route_table(workload),
        *FleetRoutes(desk).route_table(),
        *InfrastructureRoutes(desk).route_table(),
        *InsightRoutes(desk).route_table(workload),
        *AuditRoutes(desk).route_table(),
        *SecretRoutes(desk).route_table(),
        *ConfigRoutes(desk).route_table(),
        *RegistryRoutes(registry).route_table(),
        *(sessions or SessionRoutes(desk, Authenticator([]))).route_table(),
    ]
    found += AboutRoutes(found, sign_in).route_table()
    return found


class WorkloadRoutes:
    def __init__(self, desk: Desk, sign_in: SignIn) -> None:
        self._desk = desk
        self._sign_in = sign_in

    @requires(PUBLIC)
    @endpoint(response=SignIn)
    async def sign_in(self, _: web.Request) -> web.StreamResponse:
        """The OpenID provider of the platform; without an issuer, no login is needed."""
        return json_response(self._sign_in)

    @requires(AUTHENTICATED)
    @endpoint(response=Whoami)
    async def whoami(self, request: web.Request) -> web.StreamResponse:
        """The caller's identity, and its roles in projects."""
        return json_response(await self._desk.authorizer.whoami(request[CALLER]))

    @requires(Permission.DEPLOY)
    @endpoint(
        response=WorkloadSummary,
        status=201,
        mode=ResponseMode.SUBMISSION,
        request_body=WORKLOAD_YAML,
        example=EXAMPLE_DOCUMENT,
        query=BreakGlassQuery,
        reasons=SUBMISSION_REASONS,
    )
    async def submit(self, request: web.Request) -> web.StreamResponse:
        """Deploy a document."""
        (submission,) = await self._deploy_documents(request, is_set=False)
        return submission_response(submission, status=201)

    @requires(Permission.DEPLOY)
    @endpoint(
        response=list[SubmissionOutcome],
        status=201,
        mode=ResponseMode.SUBMISSION_SET,
        request_body=WORKLOADS_YAML,
        example=EXAMPLE_DOCUMENT,
        query=BreakGlassQuery,
        reasons=(*SUBMISSION_REASONS, SET_REFUSED),
    )
    async def submit_set(self, request: web.Request) -> web.StreamResponse:
        """Deploy a set of documents: all are accepted, or none."""
        return set_response(await self._deploy_documents(request, is_set=True))

    async def _deploy_documents(self, request: web.Request, *, is_set: bool) -> Sequence[SubmissionRecord]:
        project, context = path_word(request, "project"), call_context(request)
        try:
            text = request_text(request)
        except Refused as refused:
            return await self._desk.pipeline.submit(RecordUnreadable(project, refused), context)
        asked = DeployDocuments(project, text, is_set, parse_break_glass(request))
        return await self._desk.pipeline.submit(asked, context)

    @requires(Permission.DEPLOY)
    @endpoint(
        response=WorkloadSummary,
        status=201,
        mode=ResponseMode.SUBMISSION,
        query=BreakGlassQuery,
        reasons=(*SUBMISSION_REASONS, *BUILD_REASONS),
    )
    async def deploy(self, request: web.Request) -> web.StreamResponse:
        """Deploy a published build."""
        version, break_glass = path_word(request, "version"), parse_break_glass(request)
        asked = DeployBuild(*project_and_name(request), version, break_glass)
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission, status=201)

    @requires(Permission.VIEW)
    @endpoint(response=SubmissionReceipt, reasons=(SUBMISSION_UNKNOWN,))
    async def submission(self, request: web.Request) -> web.StreamResponse:
        """The state of a submission."""
        names = path_word(request, "project"), path_word(request, "id")
        return json_response(receipt_of(await self._desk.pipeline.find_submission(*names)))

    @requires(Permission.VIEW)
    @endpoint(
        response=list[Preview],
        request_body=WORKLOADS_YAML,
        example=EXAMPLE_DOCUMENT,
        reasons=(DOCUMENT_INVALID, KIND_UNKNOWN),
    )
    async def plan(self, request: web.Request) -> web.StreamResponse:
        """Preview documents: what they would become and change. Nothing is written."""
        text, project = request_text(request), path_word(request, "project")
        return json_response(await self._desk.previewer.plan(text, project, call_context(request)))

    @requires(Permission.VIEW)
    @endpoint(response=BuildPreview, reasons=BUILD_REASONS)
    async def plan_build(self, request: web.Request) -> web.StreamResponse:
        """Preview a published build: what it would change, and whether it may be deployed."""
        version = path_word(request, "version")
        names, context = project_and_name(request), call_context(request)
        return json_response(await self._desk.previewer.plan_build(*names, version, context))

    @requires(Permission.VIEW)
    @endpoint(response=list[WorkloadUsage])
    async def usage(self, request: web.Request) -> web.StreamResponse:
        """CPU and memory that the workloads of a project use now, as their nodes measure it."""
        return json_response(await self._desk.platform.reader.list_usage(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=list[WorkloadSummary])
    async def list(self, request: web.Request) -> web.StreamResponse:
        """The workloads of a project. `Age` is the age of an answer over two seconds old."""
        return summaries_response(await self._desk.list_summaries(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=UnownedObjects)
    async def unowned(self, request: web.Request) -> web.StreamResponse:
        """Workloads of a project without an owner, and Kubernetes objects whose workload was deleted."""
        return json_response(await self._desk.platform.reader.list_unowned(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=WorkloadChange, mode=ResponseMode.STREAM)
    async def watch(self, request: web.Request) -> web.StreamResponse:
        """The workloads of a project, and then each change."""
        return await stream_response(request, self._desk.watch(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=Workload, reasons=(WORKLOAD_UNKNOWN,))
    async def get(self, request: web.Request) -> web.StreamResponse:
        """The complete resource, as the cluster has it."""
        return json_response(await self._desk.platform.reader.get_workload(*project_and_name(request)))

    @requires(Permission.CHANGE)
    @endpoint(
        response=ChangeResult,
        mode=ResponseMode.SUBMISSION,
        request_body=Change,
        example=Scale(replicas=2),
        reasons=CHANGE_REASONS,
    )
    async def change(self, request: web.Request) -> web.StreamResponse:
        """Change one setting of a workload."""
        change = decode_body(request, decode_change, "invalid change")
        asked = ApplyChange(*project_and_name(request), change)
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission)

    @requires(Permission.VIEW)
    @endpoint(response=ChangePlan, request_body=Change, example=Scale(replicas=2), reasons=CHANGE_REASONS)
    async def plan_change(self, request: web.Request) -> web.StreamResponse:
        """Preview a change of one setting: what it does, and whether it may be made. Nothing is written."""
        change = decode_body(request, decode_change, "invalid change")
        return json_response(
            await self._desk.previewer.plan_change(*project_and_name(request), change, call_context(request))
        )

    @requires(Permission.VIEW)
    @endpoint(response=WorkloadDetail, reasons=(WORKLOAD_UNKNOWN,))
    async def account(self, request: web.Request) -> web.StreamResponse:
        """A workload in detail: replicas, history, conditions."""
        return json_response(await self._desk.platform.reader.describe(*project_and_name(request)))

    @requires(Permission.VIEW)
    @endpoint(response=ProvenanceChain, reasons=(WORKLOAD_UNKNOWN, STORE_FAILED, REPOSITORY_FAILED))
    async def provenance(self, request: web.Request) -> web.StreamResponse:
        """The chain from the commit to the replicas, verified now."""
        return json_response(await self._desk.provenance(*project_and_name(request)))

    @requires(Permission.VIEW)
    @endpoint(response=Diagnosis, reasons=(WORKLOAD_UNKNOWN,))
    async def why(self, request: web.Request) -> web.StreamResponse:
        """Diagnosis of a workload that is not as wanted."""
        return json_response(await self._desk.explain(*project_and_name(request)))

    @requires(Permission.DELETE)
    @endpoint(status=204, mode=ResponseMode.SUBMISSION, query=UidQuery, reasons=CHANGE_REASONS)
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a workload."""
        query = parse_query(request, UidQuery, "invalid uid")
        asked = RemoveWorkload(*project_and_name(request), query.uid)
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission, status=204)

    @requires(Permission.VIEW)
    @endpoint(response=WorkloadSummary, mode=ResponseMode.STREAM, reasons=(WORKLOAD_UNKNOWN,))
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """The state of a workload, and then each change, until it is deleted."""
        return await stream_response(request, self._desk.platform.reader.follow(*project_and_name(request)))

    @requires(Permission.VIEW)
    @endpoint(
        response=LogItem,
        mode=ResponseMode.STREAM,
        query=LogQuery,
        reasons=(DOCUMENT_INVALID, WORKLOAD_UNKNOWN, REPLICA_UNKNOWN, NO_LOGS),
    )
    async def logs(self, request: web.Request) -> web.StreamResponse:
        """The logs of a workload."""
        query = parse_query(request, LogQuery, "invalid log query")
        return await stream_response(request, self._desk.platform.reader.logs(*project_and_name(request), query))


@web.middleware
async def shield_writes(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Runs handlers of writes to their end if the client disconnects: the result is recorded, and read by a retry."""
    if request.method == "GET":
        return await handler(request)
    return await asyncio.shield(handler(request))
