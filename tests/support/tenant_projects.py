"""Two projects with members, and an authenticator that takes the token as the name."""

from __future__ import annotations

import io
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from control_plane import ControlPlane
from desk_fixtures import AppSetup, DeskWorld, desk_world, unchanged_app
from pincompute.api.documents import MAX_FILE_BYTES
from pincompute.api.identity import Identity
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.http.registry_routes import RegistryIssuer
from pincompute.desk.limits.middleware import Limits
from pincompute.desk.secrets import SecretStoreClient
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.platforms.config_store import ConfigStoreClient
from pincompute.platforms.insight_client import InsightClient
from workloads import HELLO, cluster_client, new_project


class Believing:
    """The token is the name; `root` is the administrator."""

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        return Identity(credentials.token, is_admin=credentials.token == "root") if credentials.token else None


class TenantResponse(NamedTuple):
    status: int
    body: Any

    @property
    def reason(self) -> str:
        found: str = self.body["errors"][0]["reason"]
        return found


class TenantProjects(NamedTuple):
    world: DeskWorld
    ads: str
    """Owner olga, deployer dan, viewer vera."""
    search: str
    """Owner otto."""

    async def request(self, who: str, method: str, path: str, body: str | bytes | object = b"") -> TenantResponse:
        said = body if isinstance(body, str | bytes) else msgspec.json.encode(body)
        # aiohttp warns of large bodies that are not streams.
        sent = said if len(said) < MAX_FILE_BYTES else io.BytesIO(said.encode() if isinstance(said, str) else said)
        headers = {"Authorization": f"Bearer {who}"} if who else {}
        # Sessions of browsers have no version in their path.
        whole = path if path == "/session" or path.startswith("/session/") else f"/v1{path}"
        async with self.world.http.request(method, whole, data=sent, headers=headers) as answer:
            if answer.content_type == "application/x-ndjson":
                return TenantResponse(answer.status, None)
            text = await answer.read()
            return TenantResponse(answer.status, msgspec.json.decode(text) if text.startswith((b"{", b"[")) else text)

    async def deploy(self, who: str, project: str, document: str = HELLO) -> TenantResponse:
        return await self.request(who, "POST", f"/projects/{project}/submissions", document)


@asynccontextmanager
async def tenant_projects(
    plane: ControlPlane,
    folder: Path,
    ads: Object | None = None,
    policies: tuple[Policy, ...] = (),
    limits: Limits | None = None,
    *,
    door: Authenticator | None = None,
    arrange: AppSetup = unchanged_app,
    where: str = "",
    registry: RegistryIssuer | None = None,
    insight: InsightClient | None = None,
    secret_store: SecretStoreClient | None = None,
    config_store: ConfigStoreClient | None = None,
) -> AsyncGenerator[TenantProjects]:
    """`ads` has further fields of the first project's spec; `policies` are those of the platform."""
    async with cluster_client(plane) as client:
        names = [await new_project(client) for _ in range(2)]
        olga = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}, "viewer": {"people": ["vera"]}}
        nothing: Object = {}
        otto = {"owner": {"people": ["otto"]}}
        for name, members, more in zip(names, (olga, otto), (ads or {}, nothing), strict=True):
            spec: Object = {
                "owner": f"team-{name}",
                "contact": f"#{name}",
                "review": "open",
                "quota": {"on-demand": {}},
            }
            whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}}
            await client.apply(
                {**whole, "spec": {**spec, "members": members, **more}}, CUSTOM_RESOURCES["Project"], manager=ENGINE
            )
        try:
            shown = door or Authenticator([Believing()])
            async with desk_world(
                plane, folder, shown, policies=policies, limits=limits, arrange=arrange, where=where, registry=registry,
                insight=insight, secret_store=secret_store, config_store=config_store,
            ) as here:  # fmt: skip
                yield TenantProjects(here, *names)
        finally:
            for name in names:
                # An administrator of the test may have deleted it.
                with suppress(NotFound):
                    await client.delete(CUSTOM_RESOURCES["Project"], name)


def unknown_project() -> str:
    return f"t-{secrets.token_hex(4)}"
