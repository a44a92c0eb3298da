"""Platform client that talks to a desk: one HTTP request an operation, streams as one JSON document a line."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import click
import msgspec

from pincompute.api.audit import AuditPage, AuditQuery
from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.change import Change
from pincompute.api.exec_request import ExecRequest
from pincompute.api.fleet import Fleet, FleetPod, RollStatus
from pincompute.api.logs import LogItem, LogQuery
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.project_view import ProjectSummary, ProjectView
from pincompute.api.provenance import ProvenanceChain
from pincompute.api.receipt import SubmissionOutcome, SubmissionReceipt
from pincompute.api.resource_state import ResourceState
from pincompute.api.unowned import UnownedObjects
from pincompute.api.usage import WorkloadUsage
from pincompute.api.whoami import Whoami
from pincompute.api.workload_detail import ChangeResult, Diagnosis, WorkloadDetail
from pincompute.api.workload_summary import WorkloadChange, WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.line_splitter import LineSplitter
from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DELIVERY_PENDING, DESK_UNREACHABLE, VERSIONS_DIFFER
from pincompute.cli.desk_paths import break_glass_query, encode_query, project_path
from pincompute.cli.durations import format_duration
from pincompute.cli.error_response import parse_error_response
from pincompute.cli.http_client import HttpClient, HttpResponse as Response, TransportError
from pincompute.cli.platform_client import DELIVERY_WAIT_S, PlatformClient
from pincompute.cli.retry import RetryPolicy
from pincompute.cli.tls_context import desk_tls_context

if TYPE_CHECKING:
    from pincompute.api.debug import DebugRequest
    from pincompute.api.documents import Document
    from pincompute.api.history import HistoryPage, HistoryQuery, LastState
    from pincompute.api.project import Project
    from pincompute.api.workload import Workload
    from pincompute.cli.config_client import ConfigClient
    from pincompute.cli.secret_client import SecretClient
    from pincompute.cli.session_client import SessionClient
    from pincompute.kube.exec_stream import ExecStream
    from pincompute.kube.port_forward import PortForward

T = TypeVar("T")
_POLL_PAUSE_S = 0.2
HTTP_ACCEPTED = 202
"""The submission is recorded and not yet delivered to the cluster."""


@asynccontextmanager
async def open_desk_client(
    context: Context, delivery_timeout_s: float = DELIVERY_WAIT_S
) -> AsyncIterator[PlatformClient]:
    headers = {"Authorization": f"Bearer {context.token}"} if context.token else {}
    try:
        async with HttpClient(context.desk, headers, desk_tls_context(context)) as http:
            yield DeskClient(http, context, headers, delivery_timeout_s)
    except TransportError as error:
        what = f"the desk of platform '{context.name}' at {context.desk} does not answer"
        # A TLS handshake that the desk rejects cannot be told from a connection that it drops.
        note = f"or it rejects the client certificate in {context.identity}" if context.identity else ""
        raise Refused(Problem(DESK_UNREACHABLE, what, note=note, next="pin status")) from error


class DeskClient:
    def __init__(
        self,
        http: HttpClient,
        context: Context,
        headers: Mapping[str, str],
        delivery_timeout_s: float = DELIVERY_WAIT_S,
    ) -> None:
        self.list_note = ""
        self._delivery_timeout_s = delivery_timeout_s
        self._http = http
        self._context = context
        self._headers = headers
        self._retry_policy = RetryPolicy(SystemClock())

    @property
    def config(self) -> ConfigClient:
        # Only `pin config` needs it.
        from pincompute.cli.config_client import ConfigClient

        return ConfigClient(self._fetch_body)

    @property
    def sessions(self) -> SessionClient:
        from pincompute.cli.session_client import SessionClient

        return SessionClient(self._fetch_body)

    async def submit(
        self, text: str, file: str, project: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary:
        try:
            path = project_path(project, "submissions") + break_glass_query(break_glass)
            body = await self._send_once("POST", path, text.encode())
            return self._decode(body, WorkloadSummary)
        except Refused as refused:
            # The desk knows the line, but not the name of the local file.
            raise Refused(*(_in_file(problem, file) for problem in refused.problems)) from refused

    async def submit_set(
        self, documents: Sequence[Document], project: str, break_glass: BreakGlassRequest | None = None
    ) -> list[SubmissionOutcome]:
        # Loads YAML, which only sets need.
        from pincompute.cli.files import JoinedDocuments

        joined = JoinedDocuments.join(documents)
        path = project_path(project, "sets") + break_glass_query(break_glass)
        try:
            _, body = await self._send_until_delivered("POST", path, joined.text.encode())
        except Refused as refused:
            raise Refused(*map(joined.locate, refused.problems)) from refused
        return self._decode(body, list[SubmissionOutcome])

    async def deploy_project(self, name: str, text: str, file: str, generation: int = 0) -> ResourceState:
        query = f"?{urlencode({'generation': generation})}" if generation else ""
        try:
            body = await self._send_once("PUT", f"{project_path(name)}{query}", text.encode())
            return self._decode(body, ResourceState)
        except Refused as refused:
            raise Refused(*(_in_file(problem, file) for problem in refused.problems)) from refused

    async def project_document(self, name: str) -> Project:
        # Loads the fields of projects, which only edits of them need.
        from pincompute.api.project import Project

        return await self._fetch("GET", project_path(name, "document"), Project)

    async def deploy_infrastructure(self, kind: str, name: str, text: str, file: str) -> ResourceState:
        path = f"/v1/{'runtimes' if kind == 'Runtime' else 'parts'}/{quote(name, safe='')}"
        try:
            return self._decode(await self._send_once("PUT", path, text.encode()), ResourceState)
        except Refused as refused:
            raise Refused(*(_in_file(problem, file) for problem in refused.problems)) from refused

    async def delete_project(self, name: str) -> None:
        await self._send_once("DELETE", project_path(name))

    def follow_project(self, name: str) -> AsyncGenerator[ResourceState]:
        return self._stream(project_path(name, "progress"), ResourceState)

    async def deploy(
        self, project: str, name: str, version: str, break_glass: BreakGlassRequest | None = None
    ) -> WorkloadSummary:
        path = project_path(project, "builds", name, version, "submissions")
        return self._decode(await self._send_once("POST", f"{path}{break_glass_query(break_glass)}"), WorkloadSummary)

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        path = project_path(project, "builds", name, version, "plans")
        return await self._fetch("GET", path, BuildPreview)

    async def whoami(self) -> Whoami:
        return await self._fetch("GET", "/v1/whoami", Whoami)

    async def get_project(self, name: str) -> ProjectView:
        return await self._fetch("GET", project_path(name), ProjectView)

    async def list_projects(self) -> list[ProjectSummary]:
        return await self._fetch("GET", "/v1/projects", list[ProjectSummary])

    async def audit_page(self, query: AuditQuery, project: str | None) -> AuditPage:
        path = "/v1/audit" if project is None else project_path(project, "audit")
        return await self._fetch("GET", f"{path}?{encode_query(query)}", AuditPage)

    def secrets(self, project: str) -> SecretClient:
        # Loads the structs of secrets, which only `pin secret` needs.
        from pincompute.cli.secret_client import SecretClient

        return SecretClient(self._send_once, project)

    async def provenance(self, project: str, name: str) -> ProvenanceChain:
        return await self._fetch("GET", project_path(project, "workloads", name, "provenance"), ProvenanceChain)

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self._fetch("POST", project_path(project, "plans"), list[Preview], text.encode())

    async def list_summaries(self, project: str) -> list[WorkloadSummary]:
        async with self._open_response("GET", project_path(project, "workloads")) as response:
            self.list_note = _list_note(response.headers)
            return self._decode(await response.read(), list[WorkloadSummary])

    async def history_page(self, project: str, name: str, query: HistoryQuery) -> HistoryPage:
        # Loads the entries, which only this command needs.
        from pincompute.api.history import HistoryPage

        steps = ("workloads", name, "history") if name else ("history",)
        return await self._fetch("GET", f"{project_path(project, *steps)}?{encode_query(query)}", HistoryPage)

    async def last_state(self, project: str, name: str) -> LastState:
        from pincompute.api.history import LastState

        return await self._fetch("GET", project_path(project, "workloads", name, "last-state"), LastState)

    async def list_unowned(self, project: str) -> UnownedObjects:
        return await self._fetch("GET", project_path(project, "unowned"), UnownedObjects)

    async def list_usage(self, project: str) -> list[WorkloadUsage]:
        return await self._fetch("GET", project_path(project, "usage"), list[WorkloadUsage])

    def watch(self, project: str) -> AsyncGenerator[WorkloadChange]:
        return self._stream(project_path(project, "changes"), WorkloadChange)

    async def get_workload(self, project: str, name: str) -> Workload:
        # Loads every kind, which only commands on a whole workload need.
        from pincompute.api.kinds import WORKLOADS

        found = await self._fetch("GET", project_path(project, "workloads", name), dict[str, Any])
        return msgspec.convert(found, WORKLOADS[found["kind"]])

    async def describe(self, project: str, name: str) -> WorkloadDetail:
        return await self._fetch("GET", project_path(project, "workloads", name, "account"), WorkloadDetail)

    async def explain(self, project: str, name: str) -> Diagnosis:
        return await self._fetch("GET", project_path(project, "workloads", name, "why"), Diagnosis)

    async def change(self, project: str, name: str, change: Change) -> ChangeResult:
        path, body = project_path(project, "workloads", name, "changes"), msgspec.json.encode(change)
        return self._decode(await self._send_once("POST", path, body), ChangeResult)

    async def delete(self, project: str, name: str, uid: str = "") -> None:
        query = f"?{urlencode({'uid': uid})}" if uid else ""
        await self._send_once("DELETE", f"{project_path(project, 'workloads', name)}{query}")

    async def fleet(self) -> Fleet:
        return await self._fetch("GET", "/v1/fleet", Fleet)

    async def list_pods(self) -> list[FleetPod]:
        return await self._fetch("GET", "/v1/fleet/pods", list[FleetPod])

    async def change_roll(self, number: int, change: dict[str, Any]) -> RollStatus:
        return await self._fetch("PATCH", f"/v1/runtimes/{number}/roll", RollStatus, msgspec.json.encode(change))

    def follow_roll(self, number: int) -> AsyncGenerator[RollStatus]:
        return self._stream(f"/v1/runtimes/{number}/roll", RollStatus)

    async def list_images(self) -> list[str]:
        # Loads aiohttp, which only a failed image pull needs.
        from pincompute.kube.image_registry import list_known_images

        return await list_known_images(self._context) if self._context.images else []

    def follow(self, project: str, name: str) -> AsyncGenerator[WorkloadSummary]:
        return self._stream(project_path(project, "workloads", name, "progress"), WorkloadSummary)

    def logs(self, project: str, name: str, query: LogQuery) -> AsyncGenerator[LogItem]:
        return self._stream(f"{project_path(project, 'workloads', name, 'logs')}?{encode_query(query)}", LogItem)

    def open_session(self, project: str, name: str, request: DebugRequest) -> AbstractAsyncContextManager[ExecStream]:
        # Loads aiohttp, which only WebSockets need.
        from pincompute.cli.agent_session import open_agent_session

        path = f"{project_path(project, 'workloads', name, 'sessions')}?{encode_query(request)}"
        return open_agent_session(self._context, path, self._headers, self._retry_policy)

    @asynccontextmanager
    async def exec(self, project: str, name: str, request: ExecRequest) -> AsyncIterator[ExecStream]:
        from pincompute.api.debug import DebugRequest
        from pincompute.cli.agent_session import AgentUnavailable

        async with AsyncExitStack() as stack:
            try:
                opened = self.open_session(project, name, DebugRequest.of_exec(request))
                stream = await stack.enter_async_context(opened)
            except AgentUnavailable as unavailable:
                unavailable.echo()
                stream = await stack.enter_async_context(self._exec_by_api_server(project, name, request))
            yield stream

    @asynccontextmanager
    async def _exec_by_api_server(self, project: str, name: str, request: ExecRequest) -> AsyncIterator[ExecStream]:
        from pincompute.cli.websocket import open_websocket
        from pincompute.kube.exec_stream import ExecStream

        path = f"{project_path(project, 'workloads', name, 'programs')}?{encode_query(request)}"
        async with open_websocket(self._context, path, self._headers, self._retry_policy) as socket:
            yield ExecStream(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def port_forward(self, project: str, name: str, replica: str, port: int) -> AsyncIterator[PortForward]:
        from pincompute.cli.websocket import open_websocket
        from pincompute.kube.port_forward import PortForward

        path = f"{project_path(project, 'workloads', name, 'ports', str(port))}?{urlencode({'replica': replica})}"
        async with open_websocket(self._context, path, self._headers, self._retry_policy) as socket:
            yield PortForward(socket, f"{project}/{name}", self._context.desk)

    @asynccontextmanager
    async def _open_response(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Response]:
        send = partial(self._http.send, method, path, body, headers or {})
        response = await self._retry_policy.send_with_retry(send, self._http.discard)
        try:
            if response.status >= 300:
                raise parse_error_response(await response.read(), f"the desk answered with status {response.status}")
            yield response
        finally:
            await self._http.release(response)

    async def _fetch(self, method: str, path: str, type_: type[T], body: bytes = b"") -> T:
        async with self._open_response(method, path, body) as response:
            return self._decode(await response.read(), type_)

    async def _fetch_body(self, method: str, path: str, body: bytes) -> bytes:
        async with self._open_response(method, path, body) as response:
            return await response.read()

    async def _send_once(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request that changes something; refuse where it is accepted and not delivered in time."""
        status, answer = await self._send_until_delivered(method, path, body)
        if status == HTTP_ACCEPTED:
            raise Refused(delivery_pending(msgspec.json.decode(answer, type=SubmissionReceipt)))
        return answer

    async def _send_until_delivered(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send the same request under one idempotency key until its submission is delivered, or the time is over.

        The desk holds each request for two seconds, and a desk that shuts down may not.
        """
        headers, clock = {"Idempotency-Key": os.urandom(16).hex()}, SystemClock()
        deadline = clock.monotonic() + self._delivery_timeout_s
        polls = 0
        while True:
            async with self._open_response(method, path, body, headers) as response:
                answer = await response.read()
            if response.status != HTTP_ACCEPTED or clock.monotonic() >= deadline:
                return response.status, answer
            polls += 1
            if polls == 1:
                click.echo("accepted; the cluster has not taken it yet: waiting", err=True)
            else:
                await clock.sleep(_POLL_PAUSE_S)

    def _decode(self, body: bytes, type_: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=type_)
        except msgspec.ValidationError as error:
            what = f"the desk at {self._context.desk} has another version than this `pin`: {error}"
            raise Refused(Problem(VERSIONS_DIFFER, what, next="pin up")) from error

    async def _stream(self, path: str, type_: type[T]) -> AsyncGenerator[T]:
        """Yield one document a line. Closing the generator closes the connection."""
        decoder = msgspec.json.Decoder(type_)
        async with self._open_response("GET", path) as response:
            splitter = LineSplitter()
            while chunk := await response.read_chunk():
                for line in splitter.feed(chunk):
                    yield _decode_line(line, decoder)


def _list_note(headers: Mapping[str, str]) -> str:
    if age := headers.get("age"):
        return f"as of {format_duration(float(age))} ago: the cluster does not answer"
    return "insight does not answer: read directly" if headers.get("source") else ""


def _decode_line(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        # The last line of a stream that failed holds the error.
        raise parse_error_response(line, "the desk broke off the stream") from None


def delivery_pending(receipt: SubmissionReceipt) -> Problem:
    """Explain a submission that is accepted, and not yet in its cluster."""
    what = f"{receipt.name} is accepted as {receipt.id}, and not yet delivered to its cluster"
    error = receipt.last_delivery_error or "no delivery error is known"
    return Problem(DELIVERY_PENDING, what, note=f"{error}\nthe desk delivers it as soon as it can", next="pin status")


def _in_file(problem: Problem, file: str) -> Problem:
    return problem._replace(where=problem.where._replace(file=file)) if problem.where.line else problem
