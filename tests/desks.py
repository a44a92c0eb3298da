"""A desk over HTTP before a real API server, with a record and a project of the test's own."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp.test_utils import TestClient, TestServer

from control_plane import ControlPlane
from pincompute.base.clock import SystemClock
from pincompute.base.context import Context
from pincompute.controller.fleet import Fleets
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.submission.database import open_database
from pincompute.submission.desk import Desk
from pincompute.submission.record import Record
from pincompute.submission.server import application
from workloads import cluster, new_project

TOKEN = "correct horse"
SIGNED = {"Authorization": f"Bearer {TOKEN}"}


class NextId:
    number = 0

    def new(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}-{self.number}"


class World(NamedTuple):
    http: TestClient[Any, Any]
    record: Record
    client: Client
    project: str

    @property
    def context(self) -> Context:
        return Context(name="test", desk=str(self.http.make_url("/")), token=TOKEN, kubeconfig="")

    async def submit(self, document: str | bytes, project: str = "") -> tuple[int, Any]:
        text = document.encode() if isinstance(document, str) else document
        path = f"/v1/projects/{project or self.project}/submissions"
        async with self.http.post(path, data=io.BytesIO(text), headers=SIGNED) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


@asynccontextmanager
async def world(plane: ControlPlane, folder: Path) -> AsyncGenerator[World]:
    async with cluster(plane) as client:
        record = Record(await open_database(str(folder / "desk.db")))
        desk = Desk(Workloads(client), record, SystemClock(), NextId())
        async with TestClient(TestServer(application(desk, Fleets(client), TOKEN))) as http:
            yield World(http, record, client, await new_project(client))
        await record.close()
