"""Endpoint that issues tokens of the platform's own image registry to members of projects."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import structlog
from aiohttp import web

from pincompute.admission.authorization import Permission
from pincompute.api.registry_token import RegistryToken
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NO_IMAGE_REGISTRY, WORKLOAD_UNKNOWN
from pincompute.base.registry_token import LIFETIME_S, RegistryTokenSigner, repository_access
from pincompute.desk.http.auth import CALLER, requires
from pincompute.desk.http.endpoint import endpoint
from pincompute.desk.http.requests import project_and_name
from pincompute.desk.http.responses import json_response

log = structlog.get_logger()

SHARED_REPOSITORIES = ("library", "pincompute")
"""First components of repositories that belong to no project, even to one of that name. Only the owner of the platform
writes them: images without a folder are in `library`."""


class RegistryIssuer(NamedTuple):
    """The platform's own registry, and the key that signs its tokens."""

    address: str
    authority: Path
    signer: RegistryTokenSigner


class RegistryRoutes:
    def __init__(self, issuer: RegistryIssuer | None) -> None:
        self._issuer = issuer

    def route_table(self) -> list[web.RouteDef]:
        return [web.post("/v1/projects/{project}/images/{name}/tokens", self.issue)]

    @requires(Permission.DEPLOY)
    @endpoint(response=RegistryToken, reasons=(NO_IMAGE_REGISTRY, WORKLOAD_UNKNOWN))
    async def issue(self, request: web.Request) -> web.StreamResponse:
        """A token that pushes the image PROJECT/NAME to the platform's own registry, and pulls it."""
        project, name = project_and_name(request)
        if self._issuer is None:
            what, next_ = "this platform has no image registry of its own", "push to the registry of your cluster"
            raise Refused(Problem(NO_IMAGE_REGISTRY, what, next=next_))
        if project in SHARED_REPOSITORIES:
            what = f"images in {project}/ belong to the platform, and not to the project of that name"
            raise Refused(Problem(NO_IMAGE_REGISTRY, what, next="ask the infrastructure team"))
        repository = f"{project}/{name}"
        log.info("registry token issued", caller=str(request[CALLER]), repository=repository)
        token = self._issuer.signer.sign(str(request[CALLER]), (repository_access(repository, write=True),))
        return json_response(
            RegistryToken(
                token=token,
                expires_in=LIFETIME_S,
                registry=self._issuer.address,
                repository=repository,
                authority=self._issuer.authority.read_text(),
            )
        )
