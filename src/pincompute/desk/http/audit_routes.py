"""Endpoints of the audit log: of a project for its members, of the whole platform for administrators."""

from __future__ import annotations

from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.audit import AuditPage, AuditQuery
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import requires
from pincompute.desk.http.endpoint import endpoint
from pincompute.desk.http.path_parameters import path_word
from pincompute.desk.http.requests import parse_query
from pincompute.desk.http.responses import json_response

_INVALID = "invalid page of the audit log"


class AuditRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/audit", self.of_platform),
            web.get("/v1/projects/{project}/audit", self.of_project),
        ]

    @requires(Permission.ADMINISTER)
    @endpoint(response=AuditPage, query=AuditQuery, reasons=(DOCUMENT_INVALID,))
    async def of_platform(self, request: web.Request) -> web.StreamResponse:
        """A page of the audit log of all projects and of the platform itself, newest entry first."""
        return json_response(await self._desk.audit_page(parse_query(request, AuditQuery, _INVALID)))

    @requires(Permission.VIEW)
    @endpoint(response=AuditPage, query=AuditQuery, reasons=(DOCUMENT_INVALID,))
    async def of_project(self, request: web.Request) -> web.StreamResponse:
        """A page of the audit log of a project, newest entry first."""
        query, project = parse_query(request, AuditQuery, _INVALID), path_word(request, "project")
        return json_response(await self._desk.audit_page(query, project))
