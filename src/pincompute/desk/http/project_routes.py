"""Endpoints of a project itself: its document, its state, and its end."""

from __future__ import annotations

from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.names import API_VERSION
from pincompute.api.project import Project
from pincompute.api.project_view import ProjectSummary, ProjectView
from pincompute.api.resource_state import ResourceState
from pincompute.base.reasons import CONFLICT, DOCUMENT_INVALID, IDEMPOTENCY_KEY_REUSED, KIND_UNKNOWN, PROJECT_NOT_EMPTY
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import AUTHENTICATED, CALLER, requires
from pincompute.desk.http.endpoint import PROJECT_YAML, ResponseMode, endpoint
from pincompute.desk.http.path_parameters import path_word
from pincompute.desk.http.requests import GenerationQuery, call_context, parse_query, request_text
from pincompute.desk.http.responses import json_response, stream_response, submission_response
from pincompute.desk.request import DeployProject, RemoveProject

_EXAMPLE = f"""\
apiVersion: {API_VERSION}
kind: Project
metadata: {{name: ads}}
spec: {{owner: team-ads, members: {{owner: {{people: [ann]}}}}, quota: {{on-demand: {{cpu: 100}}}}}}
"""


class ProjectRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        project = "/v1/projects/{project}"
        return [
            web.get("/v1/projects", self.projects),
            web.get(project, self.project),
            web.put(project, self.deploy),
            web.delete(project, self.delete),
            web.get(f"{project}/document", self.document),
            web.get(f"{project}/progress", self.follow),
        ]

    @requires(AUTHENTICATED)
    @endpoint(response=list[ProjectSummary])
    async def projects(self, request: web.Request) -> web.StreamResponse:
        """The projects in which the caller has a role; for administrators all."""
        return json_response(await self._desk.list_projects(request[CALLER]))

    @requires(Permission.VIEW)
    @endpoint(response=ProjectView)
    async def project(self, request: web.Request) -> web.StreamResponse:
        """A project: owner, members, quota and its use, policies, and submissions that wait for delivery."""
        return json_response(await self._desk.get_project(path_word(request, "project")))

    @requires(Permission.CONFIGURE)
    @endpoint(
        response=ResourceState,
        status=201,
        mode=ResponseMode.SUBMISSION,
        request_body=PROJECT_YAML,
        example=_EXAMPLE,
        query=GenerationQuery,
        reasons=(DOCUMENT_INVALID, KIND_UNKNOWN, IDEMPOTENCY_KEY_REUSED, CONFLICT),
    )
    async def deploy(self, request: web.Request) -> web.StreamResponse:
        """Create or change a project; owners may change its members, contact, cost centre and end."""
        query = parse_query(request, GenerationQuery, "invalid generation")
        asked = DeployProject(path_word(request, "project"), request_text(request), query.generation)
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission, status=201)

    @requires(Permission.ADMINISTER)
    @endpoint(
        status=204,
        mode=ResponseMode.SUBMISSION,
        reasons=(DOCUMENT_INVALID, IDEMPOTENCY_KEY_REUSED, CONFLICT, PROJECT_NOT_EMPTY),
    )
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a project without workloads, with everything that is left in its namespace."""
        asked = RemoveProject(path_word(request, "project"))
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission, status=204)

    @requires(Permission.VIEW)
    @endpoint(response=Project)
    async def document(self, request: web.Request) -> web.StreamResponse:
        """The project as the cluster has it."""
        return json_response(await self._desk.platform.reader.project_document(path_word(request, "project")))

    @requires(Permission.VIEW)
    @endpoint(response=ResourceState, mode=ResponseMode.STREAM)
    async def follow(self, request: web.Request) -> web.StreamResponse:
        """The state of a project, and then each change, until it is deleted."""
        return await stream_response(request, self._desk.platform.reader.follow_project(path_word(request, "project")))
