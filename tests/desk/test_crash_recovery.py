"""The desk is killed between any two steps of a submission: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import sqlalchemy as sql

from control_plane import ControlPlane
from crash_harness import CRASH_STEPS, DeskProcess, start_desk
from desk_fixtures import project_with_pod_quota, wait_ledger_holds
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store import outbox
from pincompute.desk.store.database import open_database
from pincompute.desk.store.record import SubmissionState
from pincompute.desk.store.tables import audit, revisions
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from record_fixtures import submissions_of
from tcp_forwarder import TcpForwarder
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster

SERVICE = CUSTOM_RESOURCES["PinterestService"]
VERBS = {"deploy": (1, 2), "set": (1, 2), "scale": (2, 4), "delete": (0, 0)}
"""For each verb: the generation afterwards, and the number of pods that the workload holds."""


class Ask(NamedTuple):
    """One submission with an idempotency key of its own."""

    project: str
    verb: str
    name: str

    async def send(self, http: aiohttp.ClientSession, verb: str = "") -> tuple[int, str]:
        """The status, and the submission id."""
        projects, key = f"/v1/projects/{self.project}", {"Idempotency-Key": f"{verb or self.verb} {self.name}"}
        workload = f"{projects}/workloads/{self.name}"
        match verb or self.verb:
            case "deploy" | "set" as way:
                text = "---\n".join(HELLO.replace("{name: hello}", f"{{name: {each}}}") for each in self.names)
                path = f"{projects}/{'sets' if way == 'set' else 'submissions'}"
                request = http.post(path, data=text.encode(), headers=key)
            case "scale":
                body = b'{"change": "scale", "replicas": 3}'
                request = http.post(f"{workload}/changes", data=body, headers=key)
            case _:
                request = http.delete(workload, headers=key)
        async with request as answer:
            assert answer.status < 300, await answer.text()
            if self.verb == "set":
                return answer.status, " ".join(each["receipt"]["id"] for each in await answer.json())
            id_ = (await answer.json())["id"] if answer.status == 202 else answer.headers["Submission"]
            return answer.status, id_

    @property
    def names(self) -> list[str]:
        """The workloads of the submission."""
        return [self.name, f"{self.name}-too"] if self.verb == "set" else [self.name]

    async def outcome(self, http: aiohttp.ClientSession, verb: str = "") -> str:
        """Repeats the request under the same key until it is delivered."""
        async with asyncio.timeout(60):
            while True:
                status, id_ = await self.send(http, verb)
                if status != 202:
                    return id_


@pytest.mark.parametrize(
    ("verb", "where"), [*((verb, "sqlite") for verb in VERBS), ("deploy", "postgresql")], indirect=["where"]
)
async def test_killed_at_each_step(plane: ControlPlane, tmp_path: Path, verb: str, where: str) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        asked = [Ask(project, verb, f"w{number}") for number in range(len(CRASH_STEPS))]
        if verb in ("scale", "delete"):
            async with start_desk(plane, tmp_path, where) as living:
                await asyncio.gather(*(each.outcome(living.http, "deploy") for each in asked))
        heard: list[str] = []
        told: list[str] = []
        for number, step in enumerate(CRASH_STEPS.values()):
            async with start_desk(plane, tmp_path, where, step) as desk:
                # Each reports the outcome of the submission that killed the one before.
                told += [await each.outcome(desk.http) for each in asked[:number][-1:]]
                heard.append(await _last_words(desk, asked[number]))
        async with start_desk(plane, tmp_path, where) as desk:
            told.append(await asked[-1].outcome(desk.http))
            # Repeated requests are answered as before.
            assert [await each.outcome(desk.http) for each in asked] == told
            assert [id_ or told[number] for number, id_ in enumerate(heard)] == told
            await _as_it_is(client, where, asked, told)


async def test_killed_after_accepting_while_the_cluster_is_unreachable(
    plane: ControlPlane, tmp_path: Path, where: str
) -> None:
    async with cluster_client(plane) as client, TcpForwarder(plane.port) as forwarder:
        ask = Ask(await project_with_pod_quota(client, 10), "deploy", "w0")
        async with start_desk(plane, tmp_path, where, road=forwarder.port) as desk:
            await Ask(ask.project, "deploy", "before").outcome(desk.http)
            await forwarder.cut()
            status, id_ = await ask.send(desk.http)
            assert status == 202
            await desk.kill()
        async with start_desk(plane, tmp_path, where) as desk:
            assert await ask.outcome(desk.http) == id_
        assert await _there(client, ask.project, ask.name) == (1, id_)
        await client.delete(CUSTOM_RESOURCES["Project"], ask.project)


@pytest.mark.parametrize("step", ["taken by the dispatcher", "applied", "delivered, and not yet on disk"])
@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
async def test_other_desk_takes_over_when_the_leader_dies(
    plane: ControlPlane, tmp_path: Path, where: str, step: str
) -> None:
    async with cluster_client(plane) as client, start_desk(plane, tmp_path, where, CRASH_STEPS[step]) as first:
        project = await new_project(client)
        asked = [Ask(project, "deploy", name) for name in ("w0", "w1", "w2")]
        # The first desk is the leader, and delivers for both.
        told = [await asked[0].outcome(first.http)]
        async with start_desk(plane, tmp_path, where) as second:
            told.append(await asked[1].outcome(second.http))
            first.armed.set()
            told.append(await asked[2].outcome(second.http))
            await first.wait_killed()
            assert [await each.outcome(second.http) for each in asked] == told
            await _as_it_is(client, where, asked, told)


async def _last_words(desk: DeskProcess, ask: Ask) -> str:
    """The submission id in the response, if there was one before the kill."""
    desk.armed.set()
    id_ = ""
    with suppress(aiohttp.ClientConnectionError):
        _, id_ = await ask.send(desk.http)
    await desk.wait_killed()
    return id_


async def _as_it_is(client: Client, where: str, asked: list[Ask], told: list[str]) -> None:
    """Each submission was executed once, and record, ledger and cluster agree."""
    database = await open_database(where)
    revision, pods = VERBS[asked[0].verb]
    verb = "deploy" if asked[0].verb == "set" else asked[0].verb
    each_by_itself = [
        (ask.project, name, id_)
        for ask, ids in zip(asked, told, strict=True)
        for name, id_ in zip(ask.names, ids.split(), strict=True)
    ]
    for project, name, id_ in each_by_itself:
        kept = await database.transact(partial(submissions_of, project=project, name=name))
        assert [(each.id, each.state) for each in kept if each.verb == verb] == [(id_, SubmissionState.DELIVERED)]
        assert await database.transact(partial(_kept, id_=id_)) == (2, bool(revision))
        assert await _there(client, project, name) == (revision, id_ if revision else "")
    assert await database.transact(partial(outbox.undelivered_entries, cluster="main")) == []
    await wait_ledger_holds(database, asked[0].project, pods * len(each_by_itself))
    await database.close()


def _kept(connection: sql.Connection, id_: str) -> tuple[int, int]:
    """The number of audit lines (one for each decision) and of revisions."""
    counts = [
        sql.select(sql.func.count()).select_from(each).where(each.c.submission == id_) for each in (audit, revisions)
    ]
    lines, accepted = (connection.execute(each).scalar_one() for each in counts)
    return lines, accepted


async def _there(client: Client, project: str, name: str) -> tuple[int, str]:
    """The generation, and the last submission."""
    try:
        metadata = (await client.get(SERVICE, name, project))["metadata"]
    except NotFound:
        return 0, ""
    return metadata["generation"], metadata["annotations"][SUBMISSION_ANNOTATION]
