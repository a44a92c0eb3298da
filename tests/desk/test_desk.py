"""The desk over HTTP with a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import AUTH_HEADERS, TOKEN, DeskWorld, desk_world
from pincompute.api.change import Scale
from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import MAX_FILE_BYTES
from pincompute.api.logs import LogQuery, LogReplicas
from pincompute.api.names import ENGINE, SUBMISSION_ANNOTATION
from pincompute.api.workload_summary import WorkloadChange
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.cli.desk_client import open_desk_client
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk import pipeline
from pincompute.desk.store import outbox
from pincompute.desk.store.database import Connection
from pincompute.desk.store.record import SubmissionState
from pincompute.desk.store.tables import audit, submissions
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from pincompute.platforms.protocol import Delivery, PlatformUnavailable
from record_fixtures import submissions_of
from workloads import HELLO

pytestmark = pytest.mark.cluster


async def test_accepted_deploy_is_recorded_and_delivered(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        status, answer = await here.submit(HELLO)
        assert (status, answer["name"], answer["revision"]) == (201, "hello", 1)
        assert await here.outcomes("hello") == [("submission-1", SubmissionState.DELIVERED)]
        written = await here.client.get(CUSTOM_RESOURCES["PinterestService"], "hello", here.project)
        assert written["metadata"]["annotations"][SUBMISSION_ANNOTATION] == "submission-1"


async def test_respond_async_returns_once_recorded(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        path = f"/v1/projects/{here.project}/submissions"
        prefers = {**AUTH_HEADERS, "Prefer": "wait=1, respond-async"}
        async with here.http.post(path, data=HELLO, headers=prefers) as answer:
            assert (answer.status, (await answer.json())["id"]) == (202, "submission-1")
        assert [id_ for id_, _ in await here.outcomes("hello")] == ["submission-1"]


async def test_refusal_by_the_cluster_is_recorded(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        status, answer = await here.submit(HELLO, "nowhere")
        assert status == 404
        assert answer["errors"][0]["reason"] == "ProjectUnknown"
        # The names of projects are shown to their members only.
        assert here.project not in str(answer)
        ((_, state),) = await here.outcomes("hello", "nowhere")
        assert state is SubmissionState.REFUSED


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("a: [", 422, "invalid YAML"),
        (b"\xff", 422, "must be UTF-8"),
        (HELLO + "---\n" + HELLO, 422, "expected one document, found 2"),
        (HELLO.replace("8080", "0"), 422, "port is 0"),
        ("x" * (MAX_FILE_BYTES + 1), 422, "at most 1,048,576 bytes"),
        ("a: \0", 422, "invalid YAML"),
        ("- x\n" * 100_000, 422, "more than 20,000 names and values"),
        ("[" * 100_000, 422, "more than 64 levels of nesting"),
        (HELLO.replace("PinterestService", "Pod"), 422, "unknown kind 'Pod'"),
    ],
    ids=["yaml", "bytes", "two", "port", "large", "nothing", "list", "deep", "kind"],
)
async def test_invalid_document_is_refused_and_recorded(
    plane: ControlPlane, tmp_path: Path, body: str | bytes, status: int, told: str
) -> None:
    async with desk_world(plane, tmp_path) as here:
        found, answer = await here.submit(body)
        assert found == status
        assert told in answer["errors"][0]["detail"]
        assert await here.outcomes("hello") == []
        # Its beginning is recorded.
        (kept,) = await here.database.transact(partial(submissions_of, project=here.project, name=""))
        assert (kept.state, kept.decisions[0].rule) == (SubmissionState.REFUSED, answer["errors"][0]["reason"])
        (row,) = await here.database.transact(lambda connection: connection.execute(submissions.select()).all())
        assert len(row.document) <= 4096
        (line,) = await here.database.transact(lambda connection: connection.execute(audit.select()).all())
        assert (line.act, line.about, line.words) == ("deploy: refused by the desk", "", kept.decisions[0].rule)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}])
async def test_requests_without_a_valid_token_are_rejected(
    plane: ControlPlane, tmp_path: Path, headers: dict[str, str]
) -> None:
    async with desk_world(plane, tmp_path) as here:
        for path in ("workloads", "workloads/hello", "workloads/hello/progress", "workloads/hello/logs"):
            async with here.http.get(f"/v1/projects/{here.project}/{path}", headers=headers) as answer:
                assert answer.status == 401
                assert answer.content_type == "application/problem+json"
                assert TOKEN not in await answer.text()
        async with here.http.get("/healthz") as healthy:
            assert healthy.status == 200


async def test_cli_client_against_the_desk(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        submitted = await port.submit(HELLO, "hello.yaml", here.project)
        assert [each.label for each in await port.list_summaries(here.project)] == ["hello@1"]
        followed = port.follow(here.project, "hello")
        assert await anext(followed) == submitted
        await followed.aclose()
        replicas, notice = [line async for line in port.logs(here.project, "hello", LogQuery(tail=5))]
        assert replicas == LogReplicas([])
        assert "no container has started" in msgspec.to_builtins(notice)["text"]
        await port.delete(here.project, "hello")
        assert await port.list_summaries(here.project) == []


async def test_watch_reports_changes_and_deletions(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for way in (port, WorkloadClient(here.client)):
            async with asyncio.timeout(60), aclosing(way.watch(here.project)) as sights:
                first = await anext(sights)
                assert ([each.name for each in first.current], first.deleted) == (["hello"], [])
                await port.submit(HELLO.replace("name: hello", "name: other"), "other.yaml", here.project)
                assert [each.label for each in (await anext(sights)).current] == ["other@1"]
                await port.change(here.project, "hello", Scale(replicas=first.current[0].wanted + 1))
                assert [each.wanted for each in (await anext(sights)).current] == [first.current[0].wanted + 1]
                await port.delete(here.project, "other")
                assert await anext(sights) == WorkloadChange(deleted=["other"])
        with pytest.raises(Refused, match="no project 'nowhere', or no permission to view it"):
            await anext(port.watch("nowhere"))


async def test_file_is_deployed_again_after_an_edit(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for replicas in (2, 3):
            await port.submit(HELLO, "hello.yaml", here.project)
            await port.change(here.project, "hello", Scale(replicas=replicas))
        # An apply that leaves an empty struct would be refused: null is not an object.
        await port.submit(HELLO, "hello.yaml", here.project)
        assert [each.wanted for each in await port.list_summaries(here.project)] == [1]


async def test_recreated_workload_is_not_deleted(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        former = await port.submit(HELLO, "hello.yaml", here.project)
        await port.delete(here.project, "hello", former.uid)
        newer = await port.submit(HELLO, "hello.yaml", here.project)
        with pytest.raises(Refused) as refused:
            await port.delete(here.project, "hello", former.uid)
        told = refused.value.text()
        assert "hello was deleted and recreated in the meantime; the new one was not touched  [Conflict]" in told
        assert [each.uid for each in await port.list_summaries(here.project)] == [newer.uid]


async def test_cli_adds_the_file_to_the_line(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here, open_desk_client(here.context) as port:
        with pytest.raises(Refused) as refused:
            await port.submit(HELLO.replace("port", "prot"), "hello.yaml", here.project)
        assert "hello.yaml:4 spec.prot: unknown field 'prot'" in refused.value.text()
        assert "did you mean port?" in refused.value.text()


async def test_nothing_is_accepted_beyond_the_delivery_backlog(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_world(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.project}/submissions", {**AUTH_HEADERS, "Idempotency-Key": "one"}
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert answer.status == 201
        monkeypatch.setattr(pipeline, "MAX_UNDELIVERED", 0)
        async with here.http.post(path, data=HELLO.replace("8080", "8081"), headers=AUTH_HEADERS) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, str(pipeline.BACKLOG_RETRY_AFTER_S))
            assert (await answer.json())["errors"][0]["reason"] == "DeskBusy"
        # A repeated request is answered as before.
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert answer.status == 201
        assert await here.outcomes("hello") == [("submission-1", SubmissionState.DELIVERED)]


@pytest.mark.parametrize(
    "template",
    [
        "{spec: {containers: [{name: {a: 1}}]}}",
        "{spec: {containers: [{name: hello, env: [{name: [a]}, {name: {}}]}]}}",
        "{spec: {containers: [{name: hello, volumeMounts: [{mountPath: {}}]}], volumes: [{name: {}}]}}",
    ],
)
async def test_template_names_that_are_no_strings_are_refused(
    plane: ControlPlane, tmp_path: Path, template: str
) -> None:
    """Found by Schemathesis: duplicate names are searched for in a set, so they must be strings."""
    async with desk_world(plane, tmp_path) as here:
        document = HELLO.replace("port: 8080", f"port: 8080, template: {template}")
        status, answer = await here.submit(document)
        assert (status, answer["errors"][0]["reason"]) == (422, "DocumentInvalid")


async def test_roll_change_is_validated_by_the_cluster(plane: ControlPlane, tmp_path: Path) -> None:
    async with desk_world(plane, tmp_path) as here:
        runtime = {"metadata": {"name": "7"}, "spec": {"parts": ["logs-1"], "roll": {"tiers": ["preemptible"]}}}
        await here.client.apply(runtime, CUSTOM_RESOURCES["Runtime"], manager=ENGINE)
        try:
            path = "/v1/runtimes/7/roll"
            async with here.http.patch(path, data=b'{"tiers": ["reserved"]}', headers=AUTH_HEADERS) as answer:
                (error,) = (await answer.json())["errors"]
            assert (answer.status, error["reason"]) == (422, "DocumentInvalid")
            assert "the order of zones and tiers is immutable" in error["detail"]
        finally:
            await here.client.delete(CUSTOM_RESOURCES["Runtime"], "7")
        async with here.http.get(path, headers=AUTH_HEADERS) as answer:
            assert (answer.status, (await answer.json())["errors"][0]["reason"]) == (404, "RuntimeUnknown")


async def test_nul_and_invalid_utf8_are_refused(plane: ControlPlane, tmp_path: Path, where: str) -> None:
    """PostgreSQL stores no NUL characters, and no database stores invalid UTF-8."""
    async with desk_world(plane, tmp_path, where=where) as here:
        assert (await here.submit(HELLO))[0] == 201
        workload = f"/v1/projects/{here.project}/workloads/hello"
        socket = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        for way, headers in (
            (f"DELETE {workload}?uid=%00", b""),
            (f"GET {workload}/programs?copy=%00", b"Connection: Upgrade\r\n" + socket),
            (f"GET {workload}/ports/80?copy=%00", b"Connection: Upgrade\r\n" + socket),
            (f"DELETE {workload}", b"Idempotency-Key: \xff\r\n"),
        ):
            # HTTP clients refuse to send it.
            said = await raw(here, f"{way} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n".encode() + headers)
            assert said.startswith(b"HTTP/1.1 422 "), way
        assert [state for _, state in await here.outcomes("hello")] == [SubmissionState.DELIVERED]


async def raw(here: DeskWorld, head: bytes) -> bytes:
    """The status line of the response."""
    url = here.http.make_url("/")
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(head + b"\r\n")
        return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_database_is_asked_only_for_pending_workloads(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    pending, deliver, goes_on = outbox.pending_resource, KubernetesPlatform.deliver, asyncio.Event()

    def noted(connection: Connection, cluster: str, key: WorkloadKey) -> CustomResource | None:
        asked.append(key.name)
        return pending(connection, cluster, key)

    async def held(*words: Any) -> Delivery:
        await goes_on.wait()
        return await deliver(*words)

    monkeypatch.setattr(outbox, "pending_resource", noted)
    monkeypatch.setattr(KubernetesPlatform, "deliver", held)
    prefers = {**AUTH_HEADERS, "Prefer": "respond-async"}
    async with desk_world(plane, tmp_path) as here:
        projects = f"/v1/projects/{here.project}"
        async with here.http.post(f"{projects}/submissions", data=HELLO, headers=prefers) as answer:
            assert (answer.status, asked) == (202, [])
        # The workload to scale is not in the cluster yet, only pending.
        more = b'{"change": "scale", "replicas": 3}'
        async with here.http.post(f"{projects}/workloads/hello/changes", data=more, headers=prefers) as answer:
            assert (answer.status, asked) == (202, ["hello"])
        goes_on.set()


async def test_repeated_request_is_answered_while_the_cluster_is_unreachable(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise PlatformUnavailable(Problem(CLUSTER_UNREACHABLE, "nobody answers"))

    async with desk_world(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.project}/submissions", {**AUTH_HEADERS, "Idempotency-Key": "one"}
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            first = answer.headers["Submission"]
        monkeypatch.setattr(KubernetesPlatform, "render", away)
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert (answer.status, answer.headers["Submission"]) == (201, first)
        async with here.http.post(path, data=HELLO, headers=AUTH_HEADERS) as answer:
            assert answer.status == 503
