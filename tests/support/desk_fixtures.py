"""A desk over HTTP with a real API server, a database and a project of its own."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from control_plane import ControlPlane
from pincompute.api.identity import Identity
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.api.whoami import SignIn
from pincompute.base.platform_context import Context
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.authn.local_token import LocalTokenAuth
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.desk import Desk
from pincompute.desk.http.registry_routes import RegistryIssuer
from pincompute.desk.http.server import create_app
from pincompute.desk.limits.middleware import Limits
from pincompute.desk.outbound_credentials import OutboundCredentials
from pincompute.desk.process import running_desk
from pincompute.desk.repository import RepositoryMirrors
from pincompute.desk.request import CallContext, Request
from pincompute.desk.secrets import SecretStoreClient
from pincompute.desk.store import ledger
from pincompute.desk.store.database import Database, open_database
from pincompute.desk.store.record import SubmissionRecord, SubmissionState
from pincompute.kube.client import Client
from pincompute.kube.resource import Object
from pincompute.platforms.artifact_store import FolderStore
from pincompute.platforms.config_store import ConfigStoreClient
from pincompute.platforms.insight_client import InsightClient
from record_fixtures import submissions_of
from workloads import cluster_client, new_project

TOKEN = "correct horse"
AUTH_HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PERSON = "pat"
NO_RATE_LIMIT = Limits(rate=0)
LOCAL_AUTHENTICATOR = Authenticator([LocalTokenAuth(TOKEN, PERSON)])
ADMINISTRATOR = CallContext(Identity(PERSON, is_admin=True))


class SequentialIds:
    """`submission-1`, `submission-2` and so on."""

    number = 0

    def new(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}-{self.number}"


class DeskWorld(NamedTuple):
    http: TestClient[Any, Any]
    database: Database
    client: Client
    project: str

    @property
    def context(self) -> Context:
        return Context(name="test", desk=str(self.http.make_url("/")), token=TOKEN, kubeconfig="")

    async def outcomes(self, name: str, project: str = "") -> list[tuple[str, SubmissionState]]:
        """The submissions of a workload, oldest first."""
        read = partial(submissions_of, project=project or self.project, name=name)
        return [(each.id, each.state) for each in await self.database.transact(read)]

    async def submit(self, document: str | bytes, project: str = "") -> tuple[int, Any]:
        text = document.encode() if isinstance(document, str) else document
        path = f"/v1/projects/{project or self.project}/submissions"
        async with self.http.post(path, data=io.BytesIO(text), headers=AUTH_HEADERS) as response:
            return response.status, msgspec.json.decode(await response.read())


async def submit_one(desk: Desk, request: Request, context: CallContext = ADMINISTRATOR) -> SubmissionRecord:
    """Submits a request for one workload."""
    (submitted,) = await desk.pipeline.submit(request, context)
    return submitted


def build_verifier(folder: Path, database: Database | None = None) -> BuildVerifier:
    repositories = RepositoryMirrors(folder / "repositories", OutboundCredentials())
    return BuildVerifier(FolderStore(folder / "artifacts"), repositories, database)


def unchanged_app(app: web.Application) -> web.Application:
    return app


AppSetup = Callable[[web.Application], web.Application]
"""Changes an application before it is served."""


@asynccontextmanager
async def desk_world(
    plane: ControlPlane,
    folder: Path,
    authenticator: Authenticator | None = None,
    sign_in: SignIn | None = None,
    *,
    policies: tuple[Policy, ...] = (),
    limits: Limits | None = None,
    arrange: AppSetup = unchanged_app,
    where: str = "",
    registry: RegistryIssuer | None = None,
    insight: InsightClient | None = None,
    secret_store: SecretStoreClient | None = None,
    config_store: ConfigStoreClient | None = None,
) -> AsyncGenerator[DeskWorld]:
    """A running desk with its database in the folder, or at the address `where`."""
    async with cluster_client(plane) as client:
        database = await open_database(where or str(folder / "desk.db"))
        async with running_desk(
            database, client, build_verifier(folder, database), ids=SequentialIds(), policies=policies,
            insight=insight, secret_store=secret_store, config_store=config_store,
        ) as desk:  # fmt: skip
            authenticator = authenticator or LOCAL_AUTHENTICATOR
            app = create_app(desk, authenticator, sign_in, limits or NO_RATE_LIMIT, registry)
            async with TestClient(TestServer(arrange(app))) as http:
                # Otherwise the first requests would wait for the watch caches.
                await desk.wait_ready()
                # Tests assert the outcome, not its speed.
                desk.pipeline.delivery_timeout_s = 60.0
                yield DeskWorld(http, database, client, await new_project(client))
        await database.close()


async def wait_ledger_holds(database: Database, project: str, pods: int) -> None:
    """Returns once the ledger holds so many pods, with no write left to observe."""
    async with asyncio.timeout(60):
        while True:
            held = await database.transact(
                partial(ledger.held_by_workload, cluster="main", project=project, tier="on-demand")
            )
            unobserved = await database.transact(partial(ledger.unobserved_writes, cluster="main"))
            if sum(each.pods for each in held.values()) == pods and not unobserved:
                return
            await asyncio.sleep(0.05)


async def project_with_pod_quota(client: Client, pods: int) -> str:
    """A new project whose quota is so many pods."""
    project = await new_project(client)
    spec: Object = {"owner": "team-ads", "review": "open", "quota": {"on-demand": {"pods": pods}}}
    whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": project}, "spec": spec}
    await client.apply(whole, CUSTOM_RESOURCES["Project"], manager=ENGINE)
    return project
