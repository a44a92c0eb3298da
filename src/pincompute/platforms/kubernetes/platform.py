"""Kubernetes as a platform of the desk: renders, delivers and watches workloads in one cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import msgspec

from pincompute.admission.infrastructure import INFRASTRUCTURE_KINDS, Infrastructure
from pincompute.api.change import Change
from pincompute.api.custom_resource import NAME_PATTERN, CustomResource
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import DESK, SUBMISSION_ANNOTATION
from pincompute.api.preview import Preview
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import ChangeResult
from pincompute.base.aio import beside_loop
from pincompute.base.bounded_map import BoundedMap
from pincompute.base.problem import Problem, Refused, Where, refuse_all, refuse_if
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import (
    AccessDenied,
    AdmissionNotReady,
    ApiError,
    Conflict,
    CredentialsUnavailable,
    InvalidResponse,
    NotFound,
    Unreachable,
)
from pincompute.planning.edits import preserve_edits, summarize_edit
from pincompute.planning.expiry import check_expires_later
from pincompute.planning.footprint import (
    EMPTY_FOOTPRINT,
    Footprint,
    ObservedCounts,
    WorkloadKey,
    current_footprint,
    footprint_of,
    rollout_surge,
)
from pincompute.planning.hosts import host_claim
from pincompute.planning.plan import Plan
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import as_first_generation, converged_plan, is_large
from pincompute.planning.views.summary import summarize
from pincompute.platforms.kubernetes.changes import recreated_problem, write_change_to_workload
from pincompute.platforms.kubernetes.fleet import FleetClient
from pincompute.platforms.kubernetes.logs.store_client import LogStoreClient
from pincompute.platforms.kubernetes.read_your_writes import ReadYourWrites
from pincompute.platforms.kubernetes.workload_cache import WorkloadCache
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from pincompute.platforms.protocol import (
    ChangeWorkload,
    CreateInfrastructure,
    DeleteProject,
    DeleteWorkload,
    Delivery,
    ObservedUsage,
    PlatformCommand,
    PlatformUnavailable,
    PutProject,
    PutWorkload,
    RenderedWorkload,
    UsageUpdate,
)

P = ParamSpec("P")
T = TypeVar("T")

INITIAL_SYNC_TIMEOUT_S = 5.0
"""How long a request waits for the watch caches after a start, before it is refused as cluster unreachable."""
_MAX_PREDICTIONS = 1024
"""Footprints of rendered workloads that are kept. Not all of them are accepted, so they must not be kept forever."""


def _raising_unavailable(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Turns API errors that say nothing about the request into PlatformUnavailable. The others are refusals."""

    @wraps(method)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except ApiError as error:
            if _is_refusal(error):
                raise
            failed = error.status == 500
            responded = failed or isinstance(error, AccessDenied)
            raise PlatformUnavailable(error.problem(), responded=responded, failed=failed) from error

    return wrapped


class _ComputedFootprint(NamedTuple):
    """A footprint with what it was computed from. Planning a workload is expensive, so it is not repeated."""

    workload: Workload
    context_version: int
    footprint: Footprint


class KubernetesPlatform:
    """One cluster."""

    def __init__(self, client: Client, name: str = "main", log_store: LogStoreClient | None = None) -> None:
        self.name = name
        self.runtimes = FleetClient(client)
        self._client = client
        self._cache = WorkloadCache(client)
        lookups = self.kind_of, self._cache.planning_inputs
        self.reader = self._workloads = WorkloadClient(client, log_store, *lookups, lists_projects=False)
        self._read_your_writes = ReadYourWrites(self._cache)
        self.recent_writes = self._read_your_writes.marks
        self._synced = asyncio.Event()
        self._footprints: dict[WorkloadKey, _ComputedFootprint] = {}
        """Of workloads as they were last observed."""
        self._predictions: BoundedMap[WorkloadKey, _ComputedFootprint] = BoundedMap(_MAX_PREDICTIONS)
        """Of workloads as they were last rendered: nearly all are soon observed exactly so."""
        self._maybe_written: set[WorkloadKey] = set()
        """Workloads that were written and may not be in the cache yet, so that their absence there says nothing."""

    async def preview(self, resources: Sequence[CustomResource]) -> list[Preview]:
        placed = (each for each in resources if isinstance(each, Workload) and self._synced.is_set())
        refuse_all(problem for each in placed if (problem := self._host_problem(each)))
        return await self._workloads.preview(resources)

    @_raising_unavailable
    async def render(self, workload: Workload, pending: Workload | None) -> RenderedWorkload:
        key = WorkloadKey.of(workload)
        project = await self.find_project(key.project)
        merged = preserve_edits(pending or self._cache.find(key), workload)
        created, version = _as_created(merged), self._cache.context_version
        observed = ObservedCounts.of(self._cache.find(key) or merged)
        plan, footprint = await _plan_beside_loop(self._cache.snapshot(created), observed)
        refuse_all(
            each if str(each.where) else each._replace(where=Where(object=workload.metadata.key))
            for each in (*plan.problems, *filter(None, (self._host_problem(merged), self._expiry_problem(merged))))
        )
        self._predictions.put(key, _ComputedFootprint(created, version, footprint))
        command = PutWorkload(msgspec.to_builtins(workload))
        return RenderedWorkload(key, command, merged, footprint, project, rollout_surge(plan))

    @_raising_unavailable
    async def render_change(
        self, project: str, name: str, change: Change, pending: Workload | None
    ) -> RenderedWorkload:
        owner = await self.find_project(project)
        before = pending or await self._find_workload(project, name)
        edit = await self._workloads.preview_change(before, change)
        # A service that has lost its host can still be scaled; one that gets another host is decided.
        if _custom_host(edit.workload) != _custom_host(before):
            refuse_if(self._host_problem(edit.workload))
        snapshot = self._cache.snapshot(as_first_generation(edit.workload))
        plan, footprint = await _plan_beside_loop(snapshot, ObservedCounts.of(edit.workload))
        command, surge = ChangeWorkload(change, tuple(edit.effects)), rollout_surge(plan)
        return RenderedWorkload(WorkloadKey.of(edit.workload), command, edit.workload, footprint, owner, surge)

    def _expiry_problem(self, proposed: Workload) -> Problem | None:
        return check_expires_later(proposed, self._cache.find(WorkloadKey.of(proposed)), self._client.clock.now())

    def _host_problem(self, proposed: Workload) -> Problem | None:
        return self._cache.host_verdict(proposed).problem

    @_raising_unavailable
    async def render_delete(self, project: str, name: str, uid: str, pending: Workload | None) -> RenderedWorkload:
        workload = pending or await self._find_workload(project, name)
        # A workload that is not delivered yet has no uid.
        command = DeleteWorkload(uid or ("" if pending else workload.metadata.uid))
        return RenderedWorkload(WorkloadKey.of(workload), command)

    @_raising_unavailable
    async def read_infrastructure(self, kind: str, name: str) -> Infrastructure | None:
        return await self._workloads.read_infrastructure(kind, name)

    @_raising_unavailable
    async def require_empty_project(self, name: str) -> None:
        await self._workloads.require_empty_project(name)

    @_raising_unavailable
    async def deliver(self, submission: str, key: WorkloadKey, command: PlatformCommand) -> Delivery:
        match command:
            case PutWorkload(document):
                return await self._put(submission, key, msgspec.convert(document, WORKLOADS[key.kind]))
            case ChangeWorkload():
                return await self._change(submission, key, command)
            case DeleteWorkload(uid):
                return await self._delete(key, uid)
            case PutProject():
                return await self._put_project(submission, command)
            case CreateInfrastructure(document):
                resource = msgspec.convert(document, INFRASTRUCTURE_KINDS[key.kind])
                return Delivery(
                    await self._workloads.create_infrastructure(resource, manager=DESK, submission=submission)
                )
            case DeleteProject(uid):
                await self._workloads.remove_project(key.name, uid)
                return Delivery(None)

    async def _put_project(self, submission: str, command: PutProject) -> Delivery:
        project = msgspec.convert(command.project, Project)
        written = await self._workloads.write_project(project, manager=DESK, base=command.base, submission=submission)
        if written.revision:
            await self._read_your_writes.wait_project(written.revision)
        # Projects have no row in the ledger, so that there is no revision for it to wait for.
        return Delivery(written.state)

    def kind_of(self, project: str, name: str) -> str:
        return self._cache.kind_of(project, name)

    async def list_workloads(self, project: str) -> list[Workload]:
        if self._synced.is_set() and self._cache.is_live and await self._read_your_writes.wait_visible(project):
            found = self._cache.in_project(project)
            if not found:
                await self._workloads.require_project(project)
            return found
        return await self._workloads.list_workloads(project)

    async def run(self) -> None:
        """Runs the watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            group.create_task(self._wait_cache_synced())

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def _wait_cache_synced(self) -> None:
        while not self._synced.is_set():
            try:
                await self._cache.wait_synced()
                self._synced.set()
            except ApiError:
                await self._client.clock.sleep(1.0)

    async def watch_usage(self) -> AsyncGenerator[UsageUpdate]:
        await self.wait_synced()
        # Changes up to here are part of the resync.
        self._cache.take_changed()
        revisions = {kind: self._cache.revision(kind) for kind in WORKLOADS}
        yield UsageUpdate(tuple(map(self.observed_usage, self._cache.keys())), resync_revisions=revisions)
        while True:
            await self._cache.changed_event.wait()
            yield UsageUpdate(tuple(map(self.observed_usage, sorted(self._cache.take_changed()))))

    def observed_usage(self, key: WorkloadKey) -> ObservedUsage:
        workload, revision = self._cache.find(key), self._cache.revision(key.kind)
        computed = self._footprints.pop(key, None)
        if workload is None:
            return ObservedUsage(key, None, revision)
        version, predicted = self._cache.context_version, self._predictions.pop(key, None)
        self._maybe_written.discard(key)
        if computed and computed.workload is workload and computed.context_version == version:
            footprint = computed.footprint
        elif predicted and predicted.context_version == version and _is_unchanged(workload, predicted.workload):
            footprint = predicted.footprint
        else:
            footprint = current_footprint(self._cache.snapshot(workload))
        self._footprints[key] = _ComputedFootprint(workload, version, footprint)
        return ObservedUsage(key, footprint, revision)

    async def find_project(self, name: str) -> Project | None:
        await self._wait_synced_or_refuse()
        if project := self._cache.project(name):
            return project
        # One that was created a moment ago is not in the cache yet.
        if project := await self.read_project(name):
            return project
        await self._workloads.require_project(name)
        return None

    async def cached_projects(self) -> Mapping[str, Project]:
        await self._wait_synced_or_refuse()
        return self._cache.projects

    async def read_project(self, project: str) -> Project | None:
        return await self._workloads.read_project(project) if re.fullmatch(NAME_PATTERN, project) else None

    async def _wait_synced_or_refuse(self) -> None:
        if self._synced.is_set():
            return
        try:
            async with asyncio.timeout(INITIAL_SYNC_TIMEOUT_S):
                await self.wait_synced()
        except TimeoutError:
            what = f"cluster {self.name} has not responded since the desk started"
            raise Refused(Problem(CLUSTER_UNREACHABLE, what, next="pin status")) from None

    async def _find_workload(self, project: str, name: str) -> Workload:
        """From the cluster; from the cache if the cluster does not respond."""
        try:
            return await self._workloads.get_workload(project, name)
        except ApiError as error:
            kind = self.kind_of(project, name)
            cached: Workload | None = self._cache.find(WorkloadKey(project, kind, name)) if kind else None
            if _is_refusal(error) or cached is None:
                raise
            return cached

    async def _put(self, submission: str, key: WorkloadKey, workload: Workload) -> Delivery:
        new = self._synced.is_set() and self._cache.find(key) is None and key not in self._maybe_written
        # Noted before the write: if no response arrives, it is unknown whether it was written.
        self._maybe_written.add(key)
        try:
            annotated = _with_submission(workload, submission)
            written = await self._workloads.write_workload(annotated, manager=DESK, new=new)
        except Refused as refused:
            if new and (not isinstance(refused, ApiError) or _is_refusal(refused)):
                self._maybe_written.discard(key)
            raise
        return self._delivery(summarize(written), key, written)

    async def _change(self, submission: str, key: WorkloadKey, command: ChangeWorkload) -> Delivery:
        workload = await self._workloads.get_of_kind(key.kind, key.project, key.name)
        if workload is None:
            # Raises the problem of a workload that does not exist.
            workload = await self._workloads.get_workload(key.project, key.name)
        if workload.metadata.annotations.get(SUBMISSION_ANNOTATION) == submission:
            # An earlier attempt has written it, and its response was lost.
            result = ChangeResult(summary=summarize_edit(workload), messages=list(command.effects))
            return self._delivery(result, key, workload)
        applied = await write_change_to_workload(
            self._client, workload, command.change, manager=DESK, submission=submission
        )
        if not applied.result.written:
            return Delivery(applied.result)
        return self._delivery(applied.result, key, applied.workload)

    def _delivery(self, result: object, key: WorkloadKey, written: Workload) -> Delivery:
        revision = int(written.metadata.resource_version)
        self._read_your_writes.note_written(key, revision)
        return Delivery(result, revision)

    async def _delete(self, key: WorkloadKey, uid: str) -> Delivery:
        try:
            await self._client.delete(CUSTOM_RESOURCES[key.kind], key.name, key.project, uid=uid)
        except NotFound:
            # It existed when the deletion was accepted, so it was deleted meanwhile.
            return Delivery(None)
        except Conflict as error:
            raise Refused(recreated_problem(key.project, key.name)) from error
        self._read_your_writes.note_deleted(key, uid)
        return Delivery(None)


async def _plan_beside_loop(snapshot: Snapshot, observed: ObservedCounts) -> tuple[Plan, Footprint]:
    """The plan and its footprint. Planning a large workload takes longer than other requests should wait."""
    return await beside_loop(partial(_plan_with_footprint, snapshot, observed), large=is_large(snapshot.owner))


def _plan_with_footprint(snapshot: Snapshot, observed: ObservedCounts) -> tuple[Plan, Footprint]:
    plan = converged_plan(snapshot)
    # What is refused need not be counted, and may have quantities that cannot be.
    return plan, EMPTY_FOOTPRINT if plan.problems else footprint_of(plan, observed)


def _custom_host(workload: Workload) -> str:
    claim = host_claim(workload)
    return claim.host if claim else ""


def _as_created(workload: Workload) -> Workload:
    """A workload as the API server will return it after creation, except for its uid."""
    first = as_first_generation(workload)
    return msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, uid=str(UUID(int=0))))


def _is_unchanged(workload: Workload, predicted: Workload) -> bool:
    """Whether a workload is as it was rendered, and not reconciled yet."""
    observed, expected = workload.metadata, predicted.metadata
    annotations = {name: value for name, value in observed.annotations.items() if name != SUBMISSION_ANNOTATION}
    found = (workload.kind, observed.generation, observed.labels, annotations)
    return (
        found == (predicted.kind, 1, expected.labels, expected.annotations)
        and workload.spec == predicted.spec
        and workload.status == type(workload.status)()
    )


def _is_refusal(error: ApiError) -> bool:
    """Whether an API error is about the request, and not about our credentials and rights, the load or the server."""
    unrelated = isinstance(
        error, Unreachable | InvalidResponse | CredentialsUnavailable | AccessDenied | AdmissionNotReady
    )
    return not unrelated and 400 <= error.status < 500 and error.status not in (401, 408, 429)


def _with_submission(workload: Workload, submission: str) -> Workload:
    metadata = workload.metadata
    annotations = {**metadata.annotations, SUBMISSION_ANNOTATION: submission}
    return msgspec.structs.replace(workload, metadata=msgspec.structs.replace(metadata, annotations=annotations))
