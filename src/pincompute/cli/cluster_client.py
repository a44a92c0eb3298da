"""Platform client that works by a kubeconfig: validates documents here and writes them straight to Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TypeVar

from msgspec.structs import replace

from pincompute.admission.infrastructure import Infrastructure, check_infrastructure
from pincompute.admission.project_changes import project_changed_problem
from pincompute.api.audit import AuditPage, AuditQuery
from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.change import Change
from pincompute.api.custom_resource import CustomResource
from pincompute.api.debug import DebugRequest
from pincompute.api.documents import Document, read_document, read_documents
from pincompute.api.history import HistoryPage, HistoryQuery, LastState
from pincompute.api.logs import LogItem, LogQuery
from pincompute.api.names import CLI_MANAGER
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.project import Project
from pincompute.api.provenance import ProvenanceChain
from pincompute.api.receipt import SubmissionOutcome, SubmissionReceipt
from pincompute.api.resource_state import ResourceState
from pincompute.api.validation import parse_resource, parse_resources, parse_workload
from pincompute.api.whoami import Whoami
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import ChangeResult
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.problem import Problem, Refused, refuse_all, refuse_if
from pincompute.base.reasons import PROJECT_UNKNOWN, USAGE
from pincompute.cli.config_client import ConfigClient
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.secret_client import SecretClient
from pincompute.cli.session_client import SessionClient
from pincompute.kube.client import Client
from pincompute.kube.exec_stream import ExecStream
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.platforms.kubernetes.fleet import FleetClient
from pincompute.platforms.kubernetes.logs.store_client import open_log_store_in_cluster
from pincompute.platforms.kubernetes.workloads import WorkloadClient

T = TypeVar("T")


class ClusterClient(WorkloadClient):
    """Does what a desk does, but keeps no record of submissions."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        fleet = FleetClient(client, CLI_MANAGER)
        self.fleet, self.list_pods = fleet.fleet, fleet.list_pods
        self.change_roll, self.follow_roll = fleet.change_roll, fleet.follow_roll

    @property
    def config(self) -> ConfigClient:
        raise _needs_desk("configuration bundles are published by the desk")

    @property
    def sessions(self) -> SessionClient:
        raise _needs_desk("the desk has the pages, and signs browsers in")

    async def submit(
        self, text: str, file: str, project: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary:
        if break_glass:
            raise _needs_desk("an emergency override is granted and recorded by the desk")
        return await self.write(parse_workload(read_document(text, file), project), manager=CLI_MANAGER)

    async def submit_set(
        self, documents: Sequence[Document], project: str, break_glass: BreakGlassRequest | None = None
    ) -> list[SubmissionOutcome]:
        """Plan and dry-run every document before writing the first, as Kubernetes has no transaction over several."""
        if break_glass:
            raise _needs_desk("an emergency override is granted and recorded by the desk")
        workloads = parse_resources(documents, project, parse_workload)
        previews = await self._preview_write(workloads)
        refuse_all(Problem.from_json(error) for each in previews for error in each.errors)
        writes = ((each, self.write(each, manager=CLI_MANAGER)) for each in workloads)
        return [_outcome(each, await _or_refused(write)) for each, write in writes]

    async def deploy_project(self, name: str, text: str, file: str, generation: int = 0) -> ResourceState:
        project = parse_resource(read_document(text, file), name)
        assert isinstance(project, Project)
        before = await self.read_project(name)
        if generation and (before is None or before.metadata.generation != generation):
            raise Refused(project_changed_problem(name))
        return (await self.write_project(project, manager=CLI_MANAGER)).state

    async def deploy_infrastructure(self, kind: str, name: str, text: str, file: str) -> ResourceState:
        resource = parse_resource(read_document(text, file), "")
        assert isinstance(resource, Infrastructure)
        refuse_if(check_infrastructure(await self.read_infrastructure(kind, name), resource))
        return await self.create_infrastructure(resource, manager=CLI_MANAGER)

    async def delete_project(self, name: str) -> None:
        await self.remove_project(name, (await self.project_document(name)).metadata.uid)

    async def deploy(
        self, project: str, name: str, version: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary:
        raise _needs_desk(f"{project}/{name} {version} is deployed by the desk, which reads the artifact store")

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        raise _needs_desk(f"{project}/{name} {version} is planned by the desk, which reads the artifact store")

    async def whoami(self) -> Whoami:
        raise _needs_desk("only the desk knows your login; for the cluster's own: kubectl auth whoami")

    async def audit_page(self, query: AuditQuery, project: str | None) -> AuditPage:
        raise _needs_desk("only the desk has an audit log; for the cluster's own, see the logs of its API server")

    def secrets(self, project: str) -> SecretClient:
        raise _needs_desk(f"the secrets of {project} are managed by the desk, which knows its members")

    async def history_page(self, project: str, name: str, query: HistoryQuery) -> HistoryPage:
        raise _needs_desk("only the desk has a history; for what the cluster still knows: pin events")

    async def last_state(self, project: str, name: str) -> LastState:
        raise _needs_desk(f"only the desk knows what {project}/{name} was")

    @property
    def list_note(self) -> str:
        return ""

    def open_session(self, project: str, name: str, request: DebugRequest) -> AbstractAsyncContextManager[ExecStream]:
        raise _needs_desk(f"sessions with the node of {project}/{name} are opened by the desk")

    async def provenance(self, project: str, name: str) -> ProvenanceChain:
        raise _needs_desk(f"only the desk knows the provenance of {project}/{name}")

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self._preview_write(parse_resources(read_documents(text), project))

    async def _preview_write(self, resources: Sequence[CustomResource]) -> list[Preview]:
        """Previews a write, with what the API server would refuse of it: project, rights and values.

        The preview dry-runs the creation of objects; errors of changes, such as immutable fields, show in an apply.
        """
        previews = await self.preview_with_quota(resources)
        planned = {each.metadata.name for each in resources if isinstance(each, Project)}
        refused = await asyncio.gather(*(self._write_problems(each, planned) for each in resources))
        return [_with_errors(*each) for each in zip(previews, refused, strict=True)]

    async def _write_problems(self, resource: CustomResource, planned_projects: Collection[str]) -> list[Problem]:
        if not isinstance(resource, Workload):
            return []
        result = await _or_refused(self.dry_run(resource, manager=CLI_MANAGER))
        if not isinstance(result, Refused):
            return []
        if result.problems[0].reason.http_status >= 500:
            raise result
        # A project of the same set is written before.
        written_before = resource.metadata.namespace in planned_projects
        return [each for each in result.problems if not (written_before and each.reason is PROJECT_UNKNOWN)]

    async def change(  # pyrefly: ignore  # commands name no field manager
        self, project: str, name: str, change: Change
    ) -> ChangeResult:
        return await super().change(project, name, change, manager=CLI_MANAGER)

    async def logs(self, project: str, name: str, query: LogQuery) -> AsyncGenerator[LogItem]:
        async with (
            open_log_store_in_cluster(self._client) as store,
            aclosing(WorkloadClient(self._client, store).logs(project, name, query)) as items,
        ):
            async for item in items:
                yield item

    async def list_images(self) -> list[str]:
        """Return none: Kubernetes has no list of the images in its registries."""
        return []


@asynccontextmanager
async def open_cluster_client(kubeconfig: str, context: str) -> AsyncIterator[PlatformClient]:
    async with Client(load_kubeconfig(kubeconfig, context), agent="pin") as client:
        yield ClusterClient(client)


def _with_errors(preview: Preview, problems: Sequence[Problem]) -> Preview:
    """Adds problems that the dry run of the objects has not reported."""
    known = {each["detail"] for each in preview.errors}
    return replace(preview, errors=[*(each.json() for each in problems if each.what not in known), *preview.errors])


async def _or_refused(work: Awaitable[T]) -> T | Refused:
    try:
        return await work
    except Refused as refused:
        return refused


def _outcome(workload: Workload, result: WorkloadSummary | Refused) -> SubmissionOutcome:
    """Fill a receipt as a desk would, without the parts that need its record."""
    refused = isinstance(result, Refused)
    receipt = SubmissionReceipt(
        id="", accepted_at="", caller="", verb="deploy", url="",
        project=workload.metadata.namespace, kind=workload.kind, name=workload.metadata.name,
        state="refused" if refused else "delivered",
        errors=result.json()["errors"] if refused else [],
    )  # fmt: skip
    return SubmissionOutcome(receipt, None if refused else result)


def _needs_desk(what: str) -> Refused:
    note = "--kubeconfig and --context go straight to the cluster, without a desk"
    return Refused(Problem(USAGE, what, note=note, next="the same without --kubeconfig and --context"))
