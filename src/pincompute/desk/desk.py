"""The desk's operations, as the HTTP routes call them.

Everything that changes something is a request to the `pipeline`; what is here only reads, or opens a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from pincompute.admission.authorization import Permission
from pincompute.admission.project_view import OutOfClusterState, build_project_view, visible_projects
from pincompute.admission.quota import QuotaHoldings, add_quota_to_preview
from pincompute.admission.reviews import workload_of_build
from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import read_documents
from pincompute.api.exec_request import ExecRequest
from pincompute.api.identity import Identity
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.project import Project
from pincompute.api.project_view import PendingSubmission, ProjectSummary, ProjectView
from pincompute.api.provenance import ProvenanceChain
from pincompute.api.validation import parse_resources
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.aio import beside_loop
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused
from pincompute.desk.authorization import Authorizer
from pincompute.desk.builds import BuildVerifier, verified_build
from pincompute.desk.dispatcher import Dispatcher
from pincompute.desk.pipeline import Pipeline
from pincompute.desk.policies import PolicyChecker
from pincompute.desk.provenance import provenance_links, trace_provenance
from pincompute.desk.request import CallContext
from pincompute.desk.store import ledger, outbox, record
from pincompute.desk.store.database import Connection, Database
from pincompute.desk.store.write_check import WriteCheck
from pincompute.desk.transaction import preview_quota
from pincompute.planning.footprint import WorkloadKey
from pincompute.planning.views.summary import summarize
from pincompute.platforms.access import ReplicaConnection
from pincompute.platforms.protocol import PlatformUnavailable, RenderedWorkload

_MAX_QUICK_WORKLOADS = 256
"""Longer lists are summarized beside the event loop."""


class Desk:
    """One desk, with the database and the platform that it works with."""

    def __init__(  # noqa: PLR0913  (its collaborators)
        self,
        database: Database,
        dispatcher: Dispatcher,
        builds: BuildVerifier,
        *,
        clock: Clock,
        ids: Ids,
        policies: PolicyChecker,
    ) -> None:
        self.builds = builds
        self.authorizer = Authorizer(dispatcher.platform)
        self.pipeline = Pipeline(database, dispatcher, self.authorizer, builds, policies, clock=clock, ids=ids)
        self.clock = clock
        self._policies = policies
        self._database = database
        self.write_check = WriteCheck(database, clock)
        self.platform = dispatcher.platform

    async def wait_ready(self) -> None:
        """Returns once the platform's caches are filled. Earlier requests wait for them."""
        await self.platform.wait_synced()

    async def get_project(self, name: str) -> ProjectView:
        """A project with its workloads, its use of quota by the ledger, and what waits for delivery."""
        project, workloads = await asyncio.gather(self.platform.find_project(name), self.platform.list_workloads(name))
        read = partial(_read_out_of_cluster, cluster=self.platform.name, project=name)
        holdings, undelivered = await self._database.transact(read, slow=True)
        state = OutOfClusterState(holdings, self._policies.platform_policies, undelivered)
        view = partial(build_project_view, name, project, workloads, state, self.clock.now())
        return await beside_loop(view, large=len(workloads) > _MAX_QUICK_WORKLOADS)

    async def list_summaries(self, project: str) -> list[WorkloadSummary]:
        workloads = await self.platform.list_workloads(project)
        return await beside_loop(partial(_summarize_all, workloads), large=len(workloads) > _MAX_QUICK_WORKLOADS)

    async def list_projects(self, caller: Identity) -> list[ProjectSummary]:
        return visible_projects(await self.platform.cached_projects(), caller)

    async def provenance(self, project: str, name: str) -> ProvenanceChain:
        """The chain from the commit to the replicas, verified now."""
        detail = await self.platform.reader.describe(project, name)
        last = await self._database.transact(partial(record.last_deployment, project=project, name=name))
        return await trace_provenance(detail, last, await self.platform.find_project(project), self.builds)

    @asynccontextmanager
    async def exec(
        self, project: str, name: str, request: ExecRequest, context: CallContext
    ) -> AsyncGenerator[ReplicaConnection]:
        """Runs a program in a replica. The audit log has its first word only: arguments may be secrets."""
        act = f"ran {request} in {request.replica or 'a replica'}"
        await self._authorize_and_audit(project, name, act, context)
        async with self.platform.reader.exec(project, name, request) as connection:
            yield connection

    @asynccontextmanager
    async def port_forward(
        self, project: str, name: str, replica: str, port: int, context: CallContext
    ) -> AsyncGenerator[ReplicaConnection]:
        """Opens a connection to a port of a replica."""
        act = f"connected to port {port} of {replica or 'a replica'}"
        await self._authorize_and_audit(project, name, act, context)
        async with self.platform.reader.port_forward(project, name, replica, port) as connection:
            yield connection

    async def _authorize_and_audit(self, project: str, name: str, words: str, context: CallContext) -> None:
        """Authorizes by the kind of the workload, and records the access before it begins."""
        workload = await self.platform.reader.get_workload(project, name)
        await self.authorizer.authorize(context.caller, Permission.EXEC, project, workload.kind)
        audit = partial(
            record.audit_access,
            at=self.clock.now(), caller=str(context.caller), workload_key=WorkloadKey.of(workload),
            act="enter", words=words,
        )  # fmt: skip
        await self._database.transact(audit)

    async def plan(self, text: str, project: str, context: CallContext) -> list[Preview]:
        """Previews documents: the objects that they become, and their changes. Nothing is written or recorded."""
        resources = await self.pipeline.long_texts.parse(text, partial(_parse_resources, text, project))
        for resource in resources:
            # A preview shows what exists already.
            if isinstance(resource, Workload | Project):
                owner = resource.metadata.namespace or resource.metadata.name
                await self.authorizer.authorize(context.caller, Permission.VIEW, owner)
            else:
                await self.authorizer.authorize(context.caller, Permission.ADMINISTER)
        previews = await self.platform.preview(resources)
        planned_projects = {each.metadata.name: each for each in resources if isinstance(each, Project)}
        rendered = [await self._render_for_preview(each, planned_projects) for each in resources]
        denials = [await self._policies.denials(each, context.caller) if each else () for each in rendered]
        return await self._add_quota(previews, rendered, denials)

    async def _render_for_preview(
        self, resource: CustomResource, planned_projects: Mapping[str, Project]
    ) -> RenderedWorkload | None:
        """None for what is no workload, or has no project yet. A project of the same set counts as it will be."""
        if not isinstance(resource, Workload):
            return None
        try:
            rendered = await self.platform.render(resource, None)
        except (PlatformUnavailable, Refused):
            return None
        return rendered._replace(project=planned_projects.get(rendered.workload_key.project, rendered.project))

    async def _add_quota(
        self,
        previews: Sequence[Preview],
        rendered: Sequence[RenderedWorkload | None],
        problems: Sequence[Sequence[Problem]],
    ) -> list[Preview]:
        """Adds to each preview its use of quota beside the others, and the problems for which it would be refused."""
        read = partial(preview_quota, cluster=self.platform.name, rendered=rendered)
        decisions = await self._database.transact(read, slow=True)
        return [
            add_quota_to_preview(preview, decision, found)
            for preview, decision, found in zip(previews, decisions, problems, strict=True)
        ]

    async def plan_build(self, project: str, name: str, version: str, context: CallContext) -> BuildPreview:
        """Previews the deploy of a build, with every problem for which it would be refused. Nothing is written."""
        build = await self.builds.find_build(project, name, version)
        workload = workload_of_build(build)
        try:
            rendered = await self.platform.render(workload, None)
        except PlatformUnavailable as unavailable:
            raise Refused(unavailable.problem) from unavailable
        verdict = await self.builds.review_verdict(build, rendered.project)
        previews = await self.platform.preview([workload])
        denials = await self._policies.denials(rendered, context.caller, verified_build(build, verdict))
        (preview,) = await self._add_quota(previews, [rendered], [[*verdict.problems(), *denials]])
        without_errors = msgspec.structs.replace(preview, errors=[])
        return BuildPreview(version, without_errors, provenance_links(verdict), preview.errors)


def _summarize_all(workloads: Sequence[Workload]) -> list[WorkloadSummary]:
    return [summarize(each) for each in workloads]


def _parse_resources(text: str, project: str) -> list[CustomResource]:
    return parse_resources(read_documents(text), project)


def _read_out_of_cluster(
    connection: Connection, cluster: str, project: str
) -> tuple[Mapping[str, QuotaHoldings], list[PendingSubmission]]:
    """The quota that a project's workloads hold, by tier, and its submissions that wait for delivery."""
    holdings = ledger.held_by_tier(connection, cluster, project)
    return holdings, outbox.undelivered_of_project(connection, cluster, project)
