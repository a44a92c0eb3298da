"""Endpoints of what administrators deploy for all projects: runtimes and versions of their parts."""

from __future__ import annotations

from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.names import API_VERSION
from pincompute.api.receipt import SubmissionReceipt
from pincompute.api.resource_state import ResourceState
from pincompute.api.runtime import Runtime
from pincompute.api.sidecar import PinterestSidecar
from pincompute.base.reasons import (
    CANNOT_CHANGE,
    DOCUMENT_INVALID,
    IDEMPOTENCY_KEY_REUSED,
    KIND_UNKNOWN,
    PART_UNKNOWN,
    RUNTIME_UNKNOWN,
    SUBMISSION_UNKNOWN,
)
from pincompute.desk.desk import Desk
from pincompute.desk.http.auth import requires
from pincompute.desk.http.endpoint import PART_YAML, RUNTIME_YAML, ResponseMode, endpoint
from pincompute.desk.http.path_parameters import path_number, path_word
from pincompute.desk.http.requests import call_context, request_text
from pincompute.desk.http.responses import json_response, receipt_of, submission_response
from pincompute.desk.request import DeployInfrastructure

_REASONS = (DOCUMENT_INVALID, KIND_UNKNOWN, IDEMPOTENCY_KEY_REUSED, CANNOT_CHANGE)
_RUNTIME_EXAMPLE = f"""\
apiVersion: {API_VERSION}
kind: Runtime
metadata: {{name: "42"}}
spec: {{parts: [logs-2]}}
"""
_PART_EXAMPLE = f"""\
apiVersion: {API_VERSION}
kind: PinterestSidecar
metadata: {{name: logs-2}}
spec: {{image: "logs:2"}}
"""


class InfrastructureRoutes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def route_table(self) -> list[web.RouteDef]:
        return [
            web.put("/v1/runtimes/{number}", self.create),
            web.put("/v1/parts/{part}", self.create_part),
            web.get("/v1/submissions/{id}", self.of_platform),
        ]

    @requires(Permission.ADMINISTER)
    @endpoint(
        response=ResourceState,
        status=201,
        mode=ResponseMode.SUBMISSION,
        request_body=RUNTIME_YAML,
        example=_RUNTIME_EXAMPLE,
        reasons=(*_REASONS, RUNTIME_UNKNOWN),
    )
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Create a runtime. Its parts are immutable, and its roll is another endpoint's."""
        return await self._deploy(request, Runtime.__name__, str(path_number(request, "number")))

    @requires(Permission.ADMINISTER)
    @endpoint(
        response=ResourceState,
        status=201,
        mode=ResponseMode.SUBMISSION,
        request_body=PART_YAML,
        example=_PART_EXAMPLE,
        reasons=(*_REASONS, PART_UNKNOWN),
    )
    async def create_part(self, request: web.Request) -> web.StreamResponse:
        """Create a version of a runtime part, which is immutable."""
        return await self._deploy(request, PinterestSidecar.__name__, path_word(request, "part"))

    async def _deploy(self, request: web.Request, kind: str, name: str) -> web.StreamResponse:
        asked = DeployInfrastructure(kind, name, request_text(request))
        (submission,) = await self._desk.pipeline.submit(asked, call_context(request))
        return submission_response(submission, status=201)

    @requires(Permission.ADMINISTER)
    @endpoint(response=SubmissionReceipt, reasons=(SUBMISSION_UNKNOWN,))
    async def of_platform(self, request: web.Request) -> web.StreamResponse:
        """The state of a submission that is of no project."""
        return json_response(receipt_of(await self._desk.pipeline.find_submission("", path_word(request, "id"))))
