"""The desk's operations, as the HTTP routes call them.

Everything that changes something is a request to the `pipeline`; what is here only reads, or opens a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from pincompute.admission.authorization import Permission
from pincompute.admission.project_view import OutOfClusterState, build_project_view, visible_projects
from pincompute.admission.quota import QuotaHoldings
from pincompute.api.audit import AuditPage, AuditQuery
from pincompute.api.config_bundle import ConfigBundle
from pincompute.api.debug import DebugRequest, DebugTicket
from pincompute.api.exec_request import ExecRequest
from pincompute.api.fleet import RollStatus
from pincompute.api.history import MAX_HISTORY_NUMBER, HistoryPage, HistoryRequest, LastState, LastStateRequest
from pincompute.api.identity import Identity
from pincompute.api.project_view import PendingSubmission, ProjectSummary, ProjectView
from pincompute.api.provenance import ProvenanceChain
from pincompute.api.runtime import Runtime
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import Diagnosis
from pincompute.api.workload_summary import WorkloadChange
from pincompute.base.aio import beside_loop
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INSIGHT_MISSING, WORKLOAD_UNKNOWN
from pincompute.desk.authn.sessions import Sessions
from pincompute.desk.authorization import Authorizer
from pincompute.desk.builds import BuildVerifier
from pincompute.desk.checks import ItemChecker
from pincompute.desk.config_bundles import ConfigBundles
from pincompute.desk.debug_agents import DebugAgents, no_agents, require_valid
from pincompute.desk.dispatcher import Dispatcher
from pincompute.desk.insight import ProjectWatcher, SummaryList, read_summaries
from pincompute.desk.pipeline import Pipeline
from pincompute.desk.policies import PolicyChecker
from pincompute.desk.previews import Previewer
from pincompute.desk.provenance import trace_provenance
from pincompute.desk.request import CallContext
from pincompute.desk.secrets import NoSecretStore, SecretStore
from pincompute.desk.store import ledger, outbox, record
from pincompute.desk.store.audit_log import read_page
from pincompute.desk.store.database import Connection, Database
from pincompute.desk.store.write_check import WriteCheck
from pincompute.objects.secret_reference import parse_reference
from pincompute.planning.footprint import WorkloadKey
from pincompute.planning.views.summary import summarize
from pincompute.platforms.access import ReplicaConnection
from pincompute.platforms.config_store import ConfigStoreClient
from pincompute.platforms.insight_client import InsightClient

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
        insight: InsightClient | None = None,
        secret_store: SecretStore | None = None,
        config_store: ConfigStoreClient | None = None,
        debug_agents: DebugAgents | None = None,
    ) -> None:
        self._debug_agents = debug_agents
        self._insight = insight
        self.builds = builds
        self.config_bundles = ConfigBundles(config_store, dispatcher.platform)
        self.authorizer = Authorizer(dispatcher.platform)
        self.sessions = Sessions(database, clock)
        self.secret_store = secret_store or NoSecretStore()
        checker = ItemChecker(
            database,
            dispatcher.platform,
            builds,
            policies,
            clock=clock,
            secret_store=self.secret_store,
            config_bundles=self.config_bundles,
        )
        self.pipeline = Pipeline(database, dispatcher, self.authorizer, checker, clock=clock, ids=ids)
        self.previewer = Previewer(database, dispatcher.platform, self.authorizer, self.pipeline, self.config_bundles)
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

    async def list_summaries(self, project: str) -> SummaryList:
        """The workloads of a project with all that was delivered before the call, from insight if it answers."""
        found, source = None, ""
        if self._insight:
            found, source = await read_summaries(self._insight, project, self.platform.recent_writes(project))
        if found:
            return found
        workloads = await self.platform.list_workloads(project)
        encode = partial(_encode_summaries, workloads)
        return SummaryList(await beside_loop(encode, large=len(workloads) > _MAX_QUICK_WORKLOADS), source=source)

    def watch(self, project: str) -> AsyncGenerator[WorkloadChange]:
        """All workloads of a project now, then each change."""
        reader = self.platform.reader
        if not self._insight:
            return reader.watch(project)
        return ProjectWatcher(self._insight, self.platform.recent_writes, reader.watch).watch(project)

    @property
    def required_insight(self) -> InsightClient:
        if self._insight is None:
            raise Refused(Problem(INSIGHT_MISSING, "this desk has no insight", next="pin desk --insight https://…"))
        return self._insight

    async def read_history(self, request: HistoryRequest) -> HistoryPage:
        """A page of a history, with the callers that have sent the submissions."""
        page = await self.required_insight.history_of(request)
        if not page.entries and request.workload and request.query.before == MAX_HISTORY_NUMBER:
            raise _no_history(request.project, request.workload)
        submissions = {each.submission for each in page.entries if each.submission}
        read = partial(record.callers_of, project=request.project, submissions_=submissions)
        callers = await self._database.transact(read) if submissions else {}
        entries = [msgspec.structs.replace(each, caller=callers.get(each.submission, "")) for each in page.entries]
        return HistoryPage(entries=entries, next=page.next)

    async def read_last_state(self, project: str, name: str) -> LastState:
        """The last known state of a workload, also of a deleted one."""
        state = await self.required_insight.last_state_of(LastStateRequest(project=project, workload=name))
        if state is None:
            raise _no_history(project, name)
        return state

    async def workloads_with_secret(self, project: str, name: str) -> list[str]:
        """Names of the workloads of a project that name one of its secrets."""
        workloads = await self.platform.list_workloads(project)
        return sorted(
            each.metadata.name
            for each in workloads
            if any(parse_reference(text, project)[:2] == (project, name) for text in each.spec.secrets)
        )

    async def list_projects(self, caller: Identity) -> list[ProjectSummary]:
        return visible_projects(await self.platform.cached_projects(), caller)

    async def audit_page(self, query: AuditQuery, project: str | None = None) -> AuditPage:
        """A page of the audit log, of one project or of the whole platform."""
        return await self._database.transact(partial(read_page, query=query, project=project), slow=True)

    async def change_roll(self, number: int, change: dict[str, Any], context: CallContext) -> RollStatus:
        """Changes settings of a runtime's roll. The audit log has it before it begins, like an exec."""
        await self._audit(
            WorkloadKey("", Runtime.__name__, str(number)), "roll", msgspec.json.encode(change).decode(), context
        )
        return await self.platform.runtimes.change_roll(number, change)

    async def provenance(self, project: str, name: str) -> ProvenanceChain:
        """The chain from the commit to the replicas, verified now."""
        detail = await self.platform.reader.describe(project, name)
        last = await self._database.transact(partial(record.last_deployment, project=project, name=name))
        return await trace_provenance(detail, last, await self.platform.find_project(project), self.builds)

    async def explain(self, project: str, name: str) -> Diagnosis:
        """Why a workload is not as wanted; of a deleted one, the caller that deleted it."""
        try:
            return await self.platform.reader.explain(project, name)
        except Refused as refused:
            (problem,) = refused.problems
            if problem.reason is not WORKLOAD_UNKNOWN:
                raise
            deletion = await self._database.transact(partial(record.last_deletion, project=project, name=name))
            if deletion is None:
                raise
            what = f"workload '{name}' of project {project} was deleted by {deletion.caller} at {deletion.at}"
            raise Refused(problem._replace(what=what, next=f"pin audit --project {project}")) from None

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
    async def debug_session(
        self, project: str, name: str, request: DebugRequest, context: CallContext
    ) -> AsyncGenerator[DebugTicket]:
        """A ticket for a session with the agent of a node. The session ends with the block, at the latest."""
        if self._debug_agents is None:
            raise no_agents()
        require_valid(request)
        act = f"{request} {request.replica or 'a replica'}"
        workload = await self._authorize_and_audit(project, name, act, context)
        opened = await self._debug_agents.open(workload, request, str(context.caller))
        try:
            yield opened.ticket
        finally:
            # Also if the caller has disconnected, which cancels this.
            await asyncio.shield(self._debug_agents.end_session(opened))

    @asynccontextmanager
    async def port_forward(
        self, project: str, name: str, replica: str, port: int, context: CallContext
    ) -> AsyncGenerator[ReplicaConnection]:
        """Opens a connection to a port of a replica."""
        act = f"connected to port {port} of {replica or 'a replica'}"
        await self._authorize_and_audit(project, name, act, context)
        async with self.platform.reader.port_forward(project, name, replica, port) as connection:
            yield connection

    async def _authorize_and_audit(self, project: str, name: str, words: str, context: CallContext) -> Workload:
        """Authorizes by the kind of the workload, and records the access before it begins."""
        workload = await self.platform.reader.get_workload(project, name)
        await self.authorizer.authorize(context.caller, Permission.EXEC, project, workload.kind)
        await self._audit(WorkloadKey.of(workload), "enter", words, context)
        return workload

    async def audit_config(self, project: str, name: str, words: str, context: CallContext) -> None:
        """Records a change of a configuration bundle, which the store has carried out."""
        await self._audit(WorkloadKey(project, ConfigBundle.__name__, name), "config", words, context)

    async def _audit(self, key: WorkloadKey, act: str, words: str, context: CallContext) -> None:
        audit = partial(
            record.audit_access,
            at=self.clock.now(), caller=str(context.caller), workload_key=key, act=act, words=words,
        )  # fmt: skip
        await self._database.transact(audit)


def _encode_summaries(workloads: Sequence[Workload]) -> bytes:
    return msgspec.json.encode([summarize(each) for each in workloads])


def _no_history(project: str, name: str) -> Refused:
    what = f"nothing is recorded of a workload '{name}' in project {project}"
    return Refused(Problem(WORKLOAD_UNKNOWN, what, next="pin history, which has all workloads of the project"))


def _read_out_of_cluster(
    connection: Connection, cluster: str, project: str
) -> tuple[Mapping[str, QuotaHoldings], list[PendingSubmission]]:
    """The quota that a project's workloads hold, by tier, and its submissions that wait for delivery."""
    holdings = ledger.held_by_tier(connection, cluster, project)
    return holdings, outbox.undelivered_of_project(connection, cluster, project)
