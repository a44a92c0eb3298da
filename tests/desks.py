"""A desk over HTTP before a real API server, with a record and a project of the test's own."""

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

from books import kept_of
from control_plane import ControlPlane
from pincompute.api.identity import Identity
from pincompute.api.names import API_VERSION, ENGINE
from pincompute.api.policy import Policy
from pincompute.api.whoami import SignIn
from pincompute.base.context import Context
from pincompute.controller.fleet import Fleets
from pincompute.controller.resources import NOUNS
from pincompute.kube.artifacts import Folder
from pincompute.kube.client import Client
from pincompute.kube.resource import Object
from pincompute.submission import ledger
from pincompute.submission.builds import Builds
from pincompute.submission.credentials import Credentials
from pincompute.submission.database import Database, open_database
from pincompute.submission.decide import Sender
from pincompute.submission.people.door import Door
from pincompute.submission.people.local import LocalToken
from pincompute.submission.process import at_work
from pincompute.submission.record import State
from pincompute.submission.repository import Repositories
from pincompute.submission.server import application
from pincompute.submission.turns import Limits
from workloads import cluster, new_project

TOKEN = "correct horse"
SIGNED = {"Authorization": f"Bearer {TOKEN}"}
PERSON = "pat"
UNHURRIED = Limits(rate=0)
"""How often a test asks is its own affair."""
HERE = Door([LocalToken(TOKEN, PERSON)])
OURS = Sender(Identity(PERSON, administers=True))


class NextId:
    number = 0

    def new(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}-{self.number}"


class World(NamedTuple):
    http: TestClient[Any, Any]
    database: Database
    client: Client
    project: str

    @property
    def context(self) -> Context:
        return Context(name="test", desk=str(self.http.make_url("/")), token=TOKEN, kubeconfig="")

    async def outcomes(self, name: str, project: str = "") -> list[tuple[str, State]]:
        """Every submission of a workload, the eldest first."""
        asked = partial(kept_of, project=project or self.project, name=name)
        return [(each.id, each.state) for each in await self.database.do(asked)]

    async def submit(self, document: str | bytes, project: str = "") -> tuple[int, Any]:
        text = document.encode() if isinstance(document, str) else document
        path = f"/v1/projects/{project or self.project}/submissions"
        async with self.http.post(path, data=io.BytesIO(text), headers=SIGNED) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


def builds_in(folder: Path) -> Builds:
    return Builds(Folder(folder / "artifacts"), Repositories(folder / "repositories", Credentials()))


def as_it_is(app: web.Application) -> web.Application:
    return app


Arrange = Callable[[web.Application], web.Application]
"""What a test does to a desk before it is asked."""


@asynccontextmanager
async def world(
    plane: ControlPlane,
    folder: Path,
    door: Door | None = None,
    sign_in: SignIn | None = None,
    *,
    policies: tuple[Policy, ...] = (),
    limits: Limits | None = None,
    arrange: Arrange = as_it_is,
    where: str = "",
) -> AsyncGenerator[World]:
    """Its record is a file in the folder, or `where`."""
    async with cluster(plane) as client:
        database = await open_database(where or str(folder / "desk.db"))
        async with (
            at_work(database, client, builds_in(folder), ids=NextId(), policies=policies) as desk,
            TestClient(
                TestServer(arrange(application(desk, Fleets(client), door or HERE, sign_in, limits or UNHURRIED)))
            ) as http,
        ):
            # Whoever hangs up while they are being connected leaves a socket behind.
            await desk.ready()
            # What is asserted is what becomes of it, and not how soon.
            desk.patience = 60.0
            yield World(http, database, client, await new_project(client))
        await database.close()


async def holds(database: Database, project: str, pods: int) -> None:
    """The ledger says in the end what the cluster has, and no more."""
    async with asyncio.timeout(60):
        while True:
            held = await database.do(partial(ledger.held, cluster="main", project=project, tier="on-demand"))
            waits = await database.do(partial(ledger.unsettled, cluster="main"))
            if sum(each.pods for each in held.values()) == pods and not waits:
                return
            await asyncio.sleep(0.05)


async def bounded(client: Client, pods: int) -> str:
    """A project for so many pods."""
    project = await new_project(client)
    spec: Object = {"owner": "team-ads", "review": "open", "quota": {"on-demand": {"pods": pods}}}
    whole = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": project}, "spec": spec}
    await client.apply(whole, NOUNS["Project"], manager=ENGINE)
    return project
