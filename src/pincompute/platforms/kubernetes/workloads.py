"""Reads and writes workloads of one cluster by project and name. Used by the desk, and by the CLI with a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime
from typing import NamedTuple

import msgspec

from pincompute.admission.authorization import project_unknown
from pincompute.admission.project_view import OutOfClusterState, build_project_view, visible_projects
from pincompute.api.change import Break, Change
from pincompute.api.custom_resource import CustomResource
from pincompute.api.exec_request import ExecRequest
from pincompute.api.kinds import WORKLOADS
from pincompute.api.logs import LogItem, LogQuery
from pincompute.api.membership import ReviewMode
from pincompute.api.names import PROJECT_LABEL, REVIEW_LABEL, SUBMISSION_ANNOTATION
from pincompute.api.preview import Preview
from pincompute.api.project_view import ProjectSummary, ProjectView
from pincompute.api.status import SUCCEEDED
from pincompute.api.unowned import UnownedObjects
from pincompute.api.usage import WorkloadUsage
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import ChangeResult, Diagnosis, WorkloadDetail
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary, unknown_workload_problem
from pincompute.base.problem import Problem, Refused, refuse_if
from pincompute.base.reasons import NO_LOGS, PROJECT_NOT_OPEN, PROJECT_UNKNOWN
from pincompute.controller.field_ownership import record_create_as_apply
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, Conflict, NotFound
from pincompute.kube.exec_stream import ExecStream
from pincompute.kube.port_forward import PortForward
from pincompute.kube.resource import NAMESPACES, Resource
from pincompute.objects.content import Object
from pincompute.planning.edits import EditResult, preserve_edits, runs_adopted_replicas
from pincompute.planning.expiry import check_expires_later
from pincompute.planning.views.summary import summarize
from pincompute.platforms.kubernetes.changes import (
    MAX_WRITE_ATTEMPTS,
    created_by_another_problem,
    manifest_of,
    preview_change,
    recreated_problem,
    write_change,
)
from pincompute.platforms.kubernetes.cluster_reader import (
    read_planning_context,
)
from pincompute.platforms.kubernetes.diagnosis_reader import InputsLookup, explain_workload
from pincompute.platforms.kubernetes.dry_run import DryRunner
from pincompute.platforms.kubernetes.exec_session import open_exec, open_port_forward
from pincompute.platforms.kubernetes.infrastructure import InfrastructureClient
from pincompute.platforms.kubernetes.logs.container_runs import LogFilter, LogOwner
from pincompute.platforms.kubernetes.logs.follow import LogFollower
from pincompute.platforms.kubernetes.logs.lines import LogReader, list_pods_of_workload, list_replica_names
from pincompute.platforms.kubernetes.logs.notices import LogSelection, log_notices
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient
from pincompute.platforms.kubernetes.preview import preview_resources
from pincompute.platforms.kubernetes.project_watch import watch_project
from pincompute.platforms.kubernetes.projects import ProjectClient
from pincompute.platforms.kubernetes.quota_usage import add_quota_usage, list_workloads, usage_by_tier
from pincompute.platforms.kubernetes.unowned import read_unowned
from pincompute.platforms.kubernetes.usage import UsageReader
from pincompute.platforms.kubernetes.workload_detail import read_detail

KindLookup = Callable[[str, str], str]
"""Returns the kind that a workload of this project and name was last seen with; empty if unknown."""


class WorkloadClient(ProjectClient, InfrastructureClient):
    """Reads from the cluster on every call; nothing is cached."""

    def __init__(
        self,
        client: Client,
        log_store: LogStoreClient | None = None,
        kind_of: KindLookup = lambda *_: "",
        planning_inputs: InputsLookup = lambda: None,
        *,
        lists_projects: bool = True,
    ) -> None:
        # A desk must not list projects in errors: it reads them with its own rights, not with those of its caller.
        super().__init__(client)
        self._kind_of = kind_of
        self._planning_inputs = planning_inputs
        self._lists_projects = lists_projects
        self._log_reader = LogReader(client, log_store)
        self._dry_runner = DryRunner(client)
        self._usage_reader = UsageReader(client)

    def _now(self) -> datetime:
        return self._client.clock.now()

    async def write(self, workload: Workload, *, manager: str) -> WorkloadSummary:
        """Creates or updates a workload; fields of other managers are kept."""
        if workload.spec.expires:
            stored = await self.get_of_kind(workload.kind, workload.metadata.namespace, workload.metadata.name)
            refuse_if(check_expires_later(workload, stored, self._now()))
        return summarize(await self.write_workload(workload, manager=manager))

    async def write_workload(self, workload: Workload, *, manager: str, new: bool = False) -> Workload:
        """The same, returning the workload as written. With `new` it is created without a read before."""
        request = _WriteRequest(workload, CUSTOM_RESOURCES[workload.kind], manager)
        for _ in range(MAX_WRITE_ATTEMPTS):
            try:
                return await self._create_workload(request) if new else await self._update_workload(request)
            except Conflict:
                # Another write came in between, usually of the status.
                new = False
        return await self._update_workload(request)

    async def dry_run(self, workload: Workload, *, manager: str) -> None:
        """Sends the write as a dry run; raises what the API server would refuse."""
        metadata = workload.metadata
        before = await self.get_of_kind(workload.kind, metadata.namespace, metadata.name)
        wanted = manifest_of(preserve_edits(before, workload))
        try:
            await self._client.apply(wanted, CUSTOM_RESOURCES[workload.kind], manager=manager, dry_run=True)
        except NotFound as error:
            raise await self._unknown_project_error(metadata.namespace) from error

    async def _update_workload(self, request: _WriteRequest) -> Workload:
        workload, resource, manager = request
        metadata = workload.metadata
        try:
            found = await self._client.get(resource, metadata.name, metadata.namespace)
        except NotFound:
            return await self._create_workload(request)
        before = msgspec.convert(found, type(workload))
        submission = metadata.annotations.get(SUBMISSION_ANNOTATION)
        if submission and before.metadata.annotations.get(SUBMISSION_ANNOTATION) == submission:
            # This submission was written before and only the response was lost.
            return before
        # Edits made since, such as a scale, are kept as far as the file does not set the field.
        wanted = manifest_of(preserve_edits(before, workload))
        wanted["metadata"]["uid"] = before.metadata.uid
        if runs_adopted_replicas(before) and not runs_adopted_replicas(workload):
            # The pause was written by the importer. A field that is left out of an apply keeps its value, so clear it.
            wanted["spec"]["rollout"] = {"paused": "", **wanted["spec"].get("rollout", {})}
        await record_create_as_apply(self._client, resource, found, manager=manager)
        return msgspec.convert(await self._client.apply(wanted, resource, manager=manager), type(workload))

    async def _create_workload(self, request: _WriteRequest) -> Workload:
        """Creates by POST: half the cost of an apply, and it never overwrites a workload of another client."""
        workload, resource, manager = request
        metadata = workload.metadata
        try:
            return msgspec.convert(
                await self._client.create(resource, manifest_of(workload), manager=manager), type(workload)
            )
        except NotFound as error:
            raise await self._unknown_project_error(metadata.namespace) from error
        except AlreadyExists as error:
            existing = await self.get_of_kind(workload.kind, metadata.namespace, metadata.name)
            if existing and not (
                SUBMISSION_ANNOTATION in metadata.annotations and SUBMISSION_ANNOTATION in existing.metadata.annotations
            ):
                raise Refused(created_by_another_problem(workload)) from error
            # A desk created it: this one, which lost the response, or the previous leader. Retry as an update.
            raise Conflict(409, "Conflict", "the object was created in between", about=error.about) from error

    async def get_of_kind(self, kind: str, project: str, name: str) -> Workload | None:
        """The workload of this very kind, or None."""
        try:
            found = await self._client.get(CUSTOM_RESOURCES[kind], name, project)
        except NotFound:
            return None
        return msgspec.convert(found, WORKLOADS[kind])

    async def preview(self, resources: Sequence[CustomResource]) -> list[Preview]:
        """Previews what a set of resources would become and change."""
        return await preview_resources(self._client, self._dry_runner, resources, self._now())

    async def preview_with_quota(self, resources: Sequence[CustomResource]) -> list[Preview]:
        """The same with quota usage, counted from the live cluster. For clients without a desk."""
        return await add_quota_usage(self._client, await self.preview(resources), resources, self._now())

    async def list_summaries(self, project: str) -> list[WorkloadSummary]:
        """Summaries of all workloads in a project."""
        return [summarize(each) for each in await self.list_workloads(project)]

    async def list_workloads(self, project: str) -> list[Workload]:
        """All workloads in a project; refuses an unknown project."""
        found = await list_workloads(self._client, project)
        if not found:
            await self.require_project(project)
        return found

    async def list_unowned(self, project: str) -> UnownedObjects:
        """Workloads without an owner, and objects whose workload was deleted."""
        return await read_unowned(self._client, project, self.list_workloads)

    async def list_usage(self, project: str) -> list[WorkloadUsage]:
        """CPU and memory that the workloads of a project use now; none for those without pods."""
        found = await self._usage_reader.usage_in_project(project)
        if not found:
            await self.require_project(project)
        return found

    async def get_project(self, name: str) -> ProjectView:
        """A project with its quota usage, counted from the live cluster."""
        now = self._now()
        workloads, inputs = await asyncio.gather(self.list_workloads(name), read_planning_context(self._client))
        holdings_by_tier = usage_by_tier(workloads, inputs, now).get(name, {})
        return build_project_view(name, inputs.projects.get(name), workloads, OutOfClusterState(holdings_by_tier), now)

    async def list_projects(self) -> list[ProjectSummary]:
        """All projects of the cluster."""
        return visible_projects((await read_planning_context(self._client)).projects)

    async def change(
        self, project: str, name: str, change: Change, *, manager: str, submission: str = ""
    ) -> ChangeResult:
        """Applies one change, such as scale, pause or rollback, to the workload as it is now."""
        workload = await self.get_workload(project, name)
        if isinstance(change, Break):
            await self._require_open_project(project)
        return await write_change(self._client, workload, change, manager=manager, submission=submission)

    async def preview_change(self, workload: Workload, change: Change) -> EditResult:
        """The workload after a change, without writing it."""
        if isinstance(change, Break):
            await self._require_open_project(workload.metadata.namespace)
        return await preview_change(self._client, workload, change)

    async def describe(self, project: str, name: str) -> WorkloadDetail:
        """A workload in full: natives, pods, events and revisions."""
        return await read_detail(self._client, self._usage_reader, await self.get_workload(project, name))

    async def explain(self, project: str, name: str) -> Diagnosis:
        """Diagnoses why a workload has not reached its goal, from the live state of the cluster."""
        found = await self._find_object(project, name)
        owner = msgspec.convert(found, WORKLOADS[found["kind"]])
        return await explain_workload(self._client, found, owner, self._planning_inputs())

    async def get_summary(self, project: str, name: str) -> WorkloadSummary:
        return summarize(await self.get_workload(project, name))

    async def get_workload(self, project: str, name: str) -> Workload:
        """Finds a workload of any kind; the oldest, if clients that bypass the desk took a name twice."""
        found = await self._find_object(project, name)
        return msgspec.convert(found, WORKLOADS[found["kind"]])

    async def _find_object(self, project: str, name: str) -> Object:
        """The same in full."""
        if kind := self._kind_of(project, name):
            with suppress(NotFound):
                return await self._client.get(CUSTOM_RESOURCES[kind], name, project)
        fields = f"metadata.name={name}"
        listings = await asyncio.gather(
            *(self._client.list(CUSTOM_RESOURCES[kind], project, fields=fields) for kind in WORKLOADS)
        )
        # The items of a list response lack their kind.
        found: list[Object] = [
            {**item, "kind": kind} for kind, each in zip(WORKLOADS, listings, strict=True) for item in each.items
        ]
        if not found:
            raise await self._unknown_workload_error(project, name)
        return min(found, key=lambda each: str(each["metadata"].get("creationTimestamp", "")))

    async def follow(self, project: str, name: str) -> AsyncGenerator[WorkloadSummary]:
        """The present summary, then each change, until the workload is deleted."""
        last = await self.get_summary(project, name)
        yield last
        changes = self._client.follow(CUSTOM_RESOURCES[last.kind], name, project, type=WORKLOADS[last.kind])
        async with aclosing(changes) as states:
            async for workload in states:
                summary = summarize(workload)
                if summary != last:
                    last = summary
                    yield summary

    async def watch(self, project: str) -> AsyncGenerator[WorkloadChange]:
        """All workloads of a project now, then each change."""
        async with aclosing(watch_project(self._client, project)) as changes:
            async for each in changes:
                if not each.current and not each.deleted:
                    await self.require_project(project)
                yield each

    async def logs(self, project: str, name: str, query: LogQuery) -> AsyncGenerator[LogItem]:
        """The last lines of all replicas and, with `follow`, those to come. Includes deleted pods, from the store."""
        (pods, (stored, store_problem)) = await asyncio.gather(
            list_pods_of_workload(self._client, project, name), self._log_reader.stored_runs(project, name)
        )
        workload = await self._workload_with_logs(project, name, has_stored_logs=bool(stored))
        owner = LogOwner.of(name, workload)
        found, chosen = await self._log_reader.find_histories(project, owner, (pods, stored), query)
        # With a single run selected, all names are sent, so that the client shows which replica the lines are of.
        yield list_replica_names(found if query.select_run else chosen)
        for notice in log_notices(workload, query, LogSelection(name, pods, found, chosen, store_problem)):
            yield notice
        now = int(self._now().timestamp() * 1e9)
        items = await self._log_reader.read_tail(project, owner, chosen, query)
        for _, item in items:
            yield item
        if query.follow and workload:
            replica = chosen[0].replica if query.select_run and chosen else query.replica
            follower = LogFollower(
                self._client, self._log_reader.store, LogFilter(project, owner, query.container, replica)
            )
            follower.resume_after(chosen, items, query.since if query.tail else now)
            async with aclosing(follower.run(self._wait_ended(workload))) as more:
                async for item in more:
                    yield item

    async def _workload_with_logs(self, project: str, name: str, *, has_stored_logs: bool) -> Workload | None:
        """The workload, or None if it was deleted and the log store still has lines of it."""
        try:
            workload = await self.get_workload(project, name)
        except Refused:
            if has_stored_logs:
                return None
            raise
        if workload.status.simulated:
            raise Refused(
                Problem(NO_LOGS, f"{project}/{name} is simulated: its pods run no containers and have no logs")
            )
        return workload

    async def _wait_ended(self, workload: Workload) -> None:
        """Returns when no more lines can come: the workload was deleted or has ended."""
        async with aclosing(self.follow(workload.metadata.namespace, workload.metadata.name)) as summaries:
            async for summary in summaries:
                if workload.GOAL == SUCCEEDED and (summary.done or summary.failed):
                    return

    @asynccontextmanager
    async def exec(self, project: str, name: str, request: ExecRequest) -> AsyncGenerator[ExecStream]:
        """Runs a command in a container of one replica."""
        async with open_exec(self._client, await self.get_workload(project, name), request) as stream:
            yield stream

    @asynccontextmanager
    async def port_forward(self, project: str, name: str, replica: str, port: int) -> AsyncGenerator[PortForward]:
        """Opens one connection to a port of one replica."""
        workload = await self.get_workload(project, name)
        async with open_port_forward(self._client, workload, replica, port) as connection:
            yield connection

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        """Deletes a workload, and by garbage collection its natives. A recreated one is left alone."""
        found = await self.get_workload(project, name)
        try:
            await self._client.delete(CUSTOM_RESOURCES[found.kind], name, project, uid=uid or found.metadata.uid)
        except NotFound as error:
            raise await self._unknown_workload_error(project, name) from error
        except Conflict as error:
            raise Refused(recreated_problem(project, name)) from error

    async def require_project(self, project: str) -> None:
        """Refuses a project without a namespace."""
        try:
            await self._client.get(NAMESPACES, project)
        except NotFound as error:
            raise await self._unknown_project_error(project) from error

    async def _require_open_project(self, project: str) -> None:
        """Refuses faults in projects that run reviewed work only: a fault is an unreviewed change."""
        labels = (await self._client.get(NAMESPACES, project))["metadata"].get("labels", {})
        if labels.get(REVIEW_LABEL) != ReviewMode.OPEN:
            what = f"the project {project} runs reviewed work only: faults cannot be injected"
            raise Refused(Problem(PROJECT_NOT_OPEN, what, next="pin deploy FILE --project me, then pin break there"))

    async def _unknown_workload_error(self, project: str, name: str) -> Refused:
        names = sorted(each.name for each in await self.list_summaries(project))
        return Refused(unknown_workload_problem(project, name, names))

    async def _unknown_project_error(self, project: str) -> Refused:
        if not self._lists_projects:
            return Refused(project_unknown(project))
        listing = await self._client.list(NAMESPACES, labels=PROJECT_LABEL)
        active = [each["metadata"] for each in listing.items if "deletionTimestamp" not in each["metadata"]]
        names = ", ".join(each["name"] for each in active)
        note = f"the projects are {names}" if names else "this cluster has no projects"
        return Refused(Problem(PROJECT_UNKNOWN, f"there is no project '{project}'", note=note))


class _WriteRequest(NamedTuple):
    """One workload to write, with its API resource and field manager."""

    workload: Workload
    resource: Resource
    manager: str
