"""The desk over HTTP against a real API server: accepted and on record, or refused with words."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from books import kept_of
from control_plane import ControlPlane
from desks import SIGNED, TOKEN, World, world
from pincompute.api.change import Scale
from pincompute.api.documents import MAX_BYTES
from pincompute.api.logs import Copies, Wanted
from pincompute.api.names import ENGINE, SUBMISSION
from pincompute.api.summary import Sight
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.cli.desk import desk_port
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.submission import decide, outbox
from pincompute.submission.database import Connection
from pincompute.submission.kubernetes import Kubernetes
from pincompute.submission.platform import Away, Delivered
from pincompute.submission.record import State
from pincompute.submission.tables import audit, submissions
from workloads import HELLO

pytestmark = pytest.mark.cluster


async def test_what_is_accepted_is_on_record_and_in_the_cluster(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        status, answer = await here.submit(HELLO)
        assert (status, answer["name"], answer["revision"]) == (201, "hello", 1)
        assert await here.outcomes("hello") == [("submission-1", State.DELIVERED)]
        written = await here.client.get(NOUNS["PinterestService"], "hello", here.project)
        assert written["metadata"]["annotations"][SUBMISSION] == "submission-1"


async def test_who_prefers_not_to_wait_is_answered_when_it_is_on_record(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        path = f"/v1/projects/{here.project}/submissions"
        prefers = {**SIGNED, "Prefer": "wait=1, respond-async"}
        async with here.http.post(path, data=HELLO, headers=prefers) as answer:
            assert (answer.status, (await answer.json())["id"]) == (202, "submission-1")
        assert [id_ for id_, _ in await here.outcomes("hello")] == ["submission-1"]


async def test_what_the_cluster_refuses_is_on_record_as_refused(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        status, answer = await here.submit(HELLO, "nowhere")
        assert status == 404
        assert answer["errors"][0]["reason"] == "ProjectUnknown"
        assert here.project in answer["errors"][0]["note"]
        ((_, state),) = await here.outcomes("hello", "nowhere")
        assert state is State.REFUSED


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("a: [", 422, "this is not YAML"),
        (b"\xff", 422, "not UTF-8"),
        (HELLO + "---\n" + HELLO, 422, "2 documents were sent at once"),
        (HELLO.replace("8080", "0"), 422, "port is 0"),
        ("x" * (MAX_BYTES + 1), 422, "more than 1,048,576 bytes"),
        ("a: \0", 422, "this is not YAML"),
        ("- x\n" * 100_000, 422, "more than 20,000 names and values"),
        ("[" * 100_000, 422, "more than 64 fields deep"),
        (HELLO.replace("PinterestService", "Pod"), 422, "there is no kind 'Pod'"),
    ],
    ids=["yaml", "bytes", "two", "port", "large", "nothing", "list", "deep", "kind"],
)
async def test_what_is_wrong_is_told_with_words(
    plane: ControlPlane, tmp_path: Path, body: str | bytes, status: int, told: str
) -> None:
    async with world(plane, tmp_path) as here:
        found, answer = await here.submit(body)
        assert found == status
        assert told in answer["errors"][0]["detail"]
        assert await here.outcomes("hello") == []
        # It is on record as what it was, and no longer than that needs.
        (kept,) = await here.database.do(partial(kept_of, project=here.project, name=""))
        assert (kept.state, kept.decisions[0].rule) == (State.REFUSED, answer["errors"][0]["reason"])
        (row,) = await here.database.do(lambda connection: connection.execute(submissions.select()).all())
        assert len(row.document) <= 4096
        (line,) = await here.database.do(lambda connection: connection.execute(audit.select()).all())
        assert (line.act, line.about, line.words) == ("deploy: refused by the desk", "", kept.decisions[0].rule)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}])
async def test_without_the_token_nothing_is_answered(
    plane: ControlPlane, tmp_path: Path, headers: dict[str, str]
) -> None:
    async with world(plane, tmp_path) as here:
        for path in ("workloads", "workloads/hello", "workloads/hello/progress", "workloads/hello/logs"):
            async with here.http.get(f"/v1/projects/{here.project}/{path}", headers=headers) as answer:
                assert answer.status == 401
                assert answer.content_type == "application/problem+json"
                assert TOKEN not in await answer.text()
        async with here.http.get("/healthz") as healthy:
            assert healthy.status == 200


async def test_the_hand_and_the_desk_understand_each_other(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        submitted = await port.submit(HELLO, "hello.yaml", here.project)
        assert [each.label for each in await port.all(here.project)] == ["hello@1"]
        followed = port.follow(here.project, "hello")
        assert await anext(followed) == submitted
        await followed.aclose()
        assert [line async for line in port.logs(here.project, "hello", Wanted(tail=5))] == [Copies([])]
        await port.delete(here.project, "hello")
        assert await port.all(here.project) == []


async def test_who_goes_on_looking_sees_what_comes_and_goes(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for way in (port, Workloads(here.client)):
            async with asyncio.timeout(60), aclosing(way.watch(here.project)) as sights:
                first = await anext(sights)
                assert ([each.name for each in first.now], first.gone) == (["hello"], [])
                await port.submit(HELLO.replace("name: hello", "name: other"), "other.yaml", here.project)
                assert [each.label for each in (await anext(sights)).now] == ["other@1"]
                await port.change(here.project, "hello", Scale(copies=first.now[0].wanted + 1))
                assert [each.wanted for each in (await anext(sights)).now] == [first.now[0].wanted + 1]
                await port.delete(here.project, "other")
                assert await anext(sights) == Sight(gone=["other"])
        with pytest.raises(Refused, match="there is no project 'nowhere'"):
            await anext(port.watch("nowhere"))


async def test_a_file_is_taken_again_after_an_edit(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        await port.submit(HELLO, "hello.yaml", here.project)
        for copies in (2, 3):
            await port.submit(HELLO, "hello.yaml", here.project)
            await port.change(here.project, "hello", Scale(copies=copies))
        # An apply that leaves an empty struct of what it had before would be refused: null is no object.
        await port.submit(HELLO, "hello.yaml", here.project)
        assert [each.wanted for each in await port.all(here.project)] == [1]


async def test_what_was_made_anew_meanwhile_is_not_deleted(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        former = await port.submit(HELLO, "hello.yaml", here.project)
        await port.delete(here.project, "hello", former.uid)
        newer = await port.submit(HELLO, "hello.yaml", here.project)
        with pytest.raises(Refused) as refused:
            await port.delete(here.project, "hello", former.uid)
        told = refused.value.text()
        assert "hello was deleted and made anew just now, and the new one was left alone  [ChangedMeanwhile]" in told
        assert [each.uid for each in await port.all(here.project)] == [newer.uid]


async def test_the_desk_tells_the_hand_the_line_and_the_hand_knows_the_file(
    plane: ControlPlane, tmp_path: Path
) -> None:
    async with world(plane, tmp_path) as here, desk_port(here.context) as port:
        with pytest.raises(Refused) as refused:
            await port.submit(HELLO.replace("port", "prot"), "hello.yaml", here.project)
        assert "hello.yaml:4 spec.prot: there is no field 'prot'" in refused.value.text()
        assert "did you mean port?" in refused.value.text()


async def test_where_too_much_is_on_its_way_nothing_more_is_accepted(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.project}/submissions", {**SIGNED, "Idempotency-Key": "one"}
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert answer.status == 201
        monkeypatch.setattr(decide, "MOST_WAITING", 0)
        async with here.http.post(path, data=HELLO.replace("8080", "8081"), headers=SIGNED) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, str(decide.CATCH_UP))
            assert (await answer.json())["errors"][0]["reason"] == "DeskBusy"
        # What was answered is answered again.
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert answer.status == 201
        assert await here.outcomes("hello") == [("submission-1", State.DELIVERED)]


@pytest.mark.parametrize(
    "template",
    [
        "{spec: {containers: [{name: {a: 1}}]}}",
        "{spec: {containers: [{name: hello, env: [{name: [a]}, {name: {}}]}]}}",
        "{spec: {containers: [{name: hello, volumeMounts: [{mountPath: {}}]}], volumes: [{name: {}}]}}",
    ],
)
async def test_a_name_in_a_template_that_is_none(plane: ControlPlane, tmp_path: Path, template: str) -> None:
    """Schemathesis found it: what is looked for twice must be a word."""
    async with world(plane, tmp_path) as here:
        document = HELLO.replace("port: 8080", f"port: 8080, template: {template}")
        status, answer = await here.submit(document)
        assert (status, answer["errors"][0]["reason"]) == (422, "DocumentInvalid")


async def test_a_roll_that_only_the_cluster_knows_to_be_wrong(plane: ControlPlane, tmp_path: Path) -> None:
    async with world(plane, tmp_path) as here:
        runtime = {"metadata": {"name": "7"}, "spec": {"parts": ["logs-1"], "roll": {"tiers": ["preemptible"]}}}
        await here.client.apply(runtime, NOUNS["Runtime"], manager=ENGINE)
        try:
            path = "/v1/runtimes/7/roll"
            async with here.http.patch(path, data=b'{"tiers": ["reserved"]}', headers=SIGNED) as answer:
                (error,) = (await answer.json())["errors"]
            assert (answer.status, error["reason"]) == (422, "DocumentInvalid")
            assert "the order of zones and tiers cannot change" in error["detail"]
        finally:
            await here.client.delete(NOUNS["Runtime"], "7")
        async with here.http.get(path, headers=SIGNED) as answer:
            assert (answer.status, (await answer.json())["errors"][0]["reason"]) == (404, "RuntimeUnknown")


async def test_what_no_record_can_keep_is_refused_and_never_fails(
    plane: ControlPlane, tmp_path: Path, where: str
) -> None:
    """PostgreSQL keeps no character 0, and no database what is not UTF-8."""
    async with world(plane, tmp_path, where=where) as here:
        assert (await here.submit(HELLO))[0] == 201
        workload = f"/v1/projects/{here.project}/workloads/hello"
        socket = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        for way, headers in (
            (f"DELETE {workload}?uid=%00", b""),
            (f"GET {workload}/programs?copy=%00", b"Connection: Upgrade\r\n" + socket),
            (f"GET {workload}/ports/80?copy=%00", b"Connection: Upgrade\r\n" + socket),
            (f"DELETE {workload}", b"Idempotency-Key: \xff\r\n"),
        ):
            # A client that means well cannot say it.
            said = await raw(here, f"{way} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n".encode() + headers)
            assert said.startswith(b"HTTP/1.1 422 "), way
        assert [state for _, state in await here.outcomes("hello")] == [State.DELIVERED]


async def raw(here: World, head: bytes) -> bytes:
    """The first line of what is answered."""
    url = here.http.make_url("/")
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(head + b"\r\n")
        return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_of_what_is_on_its_way_the_record_is_asked_and_of_nothing_else(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    pending, deliver, goes_on = outbox.pending, Kubernetes.deliver, asyncio.Event()

    def noted(connection: Connection, cluster: str, project: str, name: str) -> Workload | None:
        asked.append(name)
        return pending(connection, cluster, project, name)

    async def held(*words: Any) -> Delivered:
        await goes_on.wait()
        return await deliver(*words)

    monkeypatch.setattr(outbox, "pending", noted)
    monkeypatch.setattr(Kubernetes, "deliver", held)
    prefers = {**SIGNED, "Prefer": "respond-async"}
    async with world(plane, tmp_path) as here:
        projects = f"/v1/projects/{here.project}"
        async with here.http.post(f"{projects}/submissions", data=HELLO, headers=prefers) as answer:
            assert (answer.status, asked) == (202, [])
        # There is nothing yet of which there could be more, but on its way.
        more = b'{"change": "scale", "copies": 3}'
        async with here.http.post(f"{projects}/workloads/hello/changes", data=more, headers=prefers) as answer:
            assert (answer.status, asked) == (202, ["hello"])
        goes_on.set()


async def test_what_was_answered_is_answered_again_also_where_nothing_can_be_said_now(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Away(Problem(CLUSTER_UNREACHABLE, "nobody answers"))

    async with world(plane, tmp_path) as here:
        path, key = f"/v1/projects/{here.project}/submissions", {**SIGNED, "Idempotency-Key": "one"}
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            first = answer.headers["Submission"]
        monkeypatch.setattr(Kubernetes, "render", away)
        async with here.http.post(path, data=HELLO, headers=key) as answer:
            assert (answer.status, answer.headers["Submission"]) == (201, first)
        async with here.http.post(path, data=HELLO, headers=SIGNED) as answer:
            assert answer.status == 503
