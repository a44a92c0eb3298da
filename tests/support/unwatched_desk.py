"""A desk over HTTP whose platform plans with the real planners, but has no cluster: it delivers nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from aiohttp.test_utils import TestClient, TestServer

from desk_fixtures import AUTH_HEADERS, LOCAL_AUTHENTICATOR, NO_RATE_LIMIT, SequentialIds, build_verifier
from pincompute.admission.authorization import project_unknown
from pincompute.admission.infrastructure import Infrastructure
from pincompute.admission.project_changes import check_project_empty
from pincompute.api.custom_resource import CustomResource
from pincompute.api.preview import Preview
from pincompute.api.project import Project
from pincompute.api.runtime import Runtime, RuntimeSpec
from pincompute.api.sidecar import PinterestSidecar, SidecarSpec
from pincompute.api.structs import Metadata
from pincompute.api.workload import Workload
from pincompute.base.clock import Clock, SystemClock
from pincompute.base.problem import Refused, refuse_all, refuse_if
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.authn.code_flow import CodeFlow
from pincompute.desk.desk import Desk
from pincompute.desk.dispatcher import Dispatcher
from pincompute.desk.http.server import create_app
from pincompute.desk.ledger_sync import LedgerSync
from pincompute.desk.policies import PolicyChecker
from pincompute.desk.store.database import open_database
from pincompute.kube.client import Client
from pincompute.planning.footprint import WorkloadKey
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.views.plan_preview import as_first_generation, preview_plan
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from request_cost import measured_holds


class _NoClient(NamedTuple):
    """What a platform needs of a client to be created."""

    clock: SystemClock


class UnwatchedPlatform(KubernetesPlatform):
    """Knows one project, and the workloads that the test puts into it."""

    def __init__(self, project: Project) -> None:
        super().__init__(cast("Client", _NoClient(SystemClock())))
        self.project = project
        self.workloads: dict[str, Workload] = {}

    async def find_project(self, name: str) -> Project | None:
        return self.project if name == self.project.metadata.name else None

    async def read_project(self, project: str) -> Project | None:
        return await self.find_project(project)

    async def cached_projects(self) -> Mapping[str, Project]:
        return {self.project.metadata.name: self.project}

    async def list_workloads(self, project: str) -> list[Workload]:
        return list(self.workloads.values())

    async def require_empty_project(self, name: str) -> None:
        refuse_if(check_project_empty(name, [each.metadata.name for each in await self.list_workloads(name)]))

    async def _find_workload(self, project: str, name: str) -> Workload:
        return self.workloads[name]

    def kind_of(self, project: str, name: str) -> str:
        return self.workloads[name].kind if name in self.workloads else ""

    def put(self, workload: Workload) -> None:
        self.workloads[WorkloadKey.of(workload).name] = workload


class UnwatchedDesk(NamedTuple):
    http: TestClient[Any, Any]
    platform: UnwatchedPlatform
    desk: Desk

    async def hold_ms(self, method: str, path: str, body: str = "") -> float:
        """The longest time for which a request holds the event loop."""
        headers = {**AUTH_HEADERS, "Prefer": "respond-async"}
        with measured_holds() as meter:
            async with self.http.request(method, f"/v1/projects/{path}", data=body.encode(), headers=headers) as answer:
                await answer.read()
        assert answer.status < 500, await answer.text()
        return meter.longest_ms


class PreviewingPlatform(UnwatchedPlatform):
    """Has one runtime, refuses unknown projects, and previews by the plan alone, as there is no cluster to ask."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        part = PinterestSidecar(metadata=Metadata(name="logs-2"), spec=SidecarSpec(image="logs:2"))
        runtime = Runtime(metadata=Metadata(name="42"), spec=RuntimeSpec(parts=["logs-2"]))
        self.infrastructure: dict[tuple[str, str], Infrastructure] = {
            (each.kind, each.metadata.name): each for each in (part, runtime)
        }
        # The watch that would fill it is not run.
        self._cache._context.runtimes = Runtimes.from_resources([part, runtime])  # noqa: SLF001

    async def find_project(self, name: str) -> Project | None:
        if name != self.project.metadata.name:
            raise Refused(project_unknown(name))
        return self.project

    async def read_project(self, project: str) -> Project | None:
        return self.project if project == self.project.metadata.name else None

    async def read_infrastructure(self, kind: str, name: str) -> Infrastructure | None:
        return self.infrastructure.get((kind, name))

    async def preview(self, resources: Sequence[CustomResource]) -> list[Preview]:
        planned_kinds = [each for each in resources if isinstance(each, Workload | Project | Infrastructure)]
        planned = [preview_plan(self._cache.snapshot(as_first_generation(each)), {}) for each in planned_kinds]
        refuse_all(problem for each in planned for problem in each.problems)
        return [preview for each in planned for preview in each.previews]


@asynccontextmanager
async def unwatched_desk(
    folder: Path,
    project: Project,
    platform_type: type[UnwatchedPlatform] = UnwatchedPlatform,
    authenticator: Authenticator = LOCAL_AUTHENTICATOR,
    *,
    clock: Clock | None = None,
    where: str = "",
    port: int | None = None,
    code_flow: CodeFlow | None = None,
) -> AsyncGenerator[UnwatchedDesk]:
    """A desk with its database in the folder, or at the address `where`."""
    database = await open_database(where or str(folder / "desk.db"))
    platform, clock = platform_type(project), clock or SystemClock()
    dispatcher = Dispatcher(database, platform, LedgerSync(database, platform, clock), clock, lambda: 0.5)
    checker = PolicyChecker((), database)
    desk = Desk(
        database, dispatcher, build_verifier(folder, database), clock=clock, ids=SequentialIds(), policies=checker
    )
    app = create_app(desk, authenticator, limits=NO_RATE_LIMIT, code_flow=code_flow)
    async with TestClient(TestServer(app, port=port)) as http:
        yield UnwatchedDesk(http, platform, desk)
        await asyncio.sleep(0)
    await database.close()
