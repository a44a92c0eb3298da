"""The desk killed between any two steps of a submission: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import sqlalchemy as sql

from books import kept_of
from control_plane import ControlPlane
from desks import bounded, holds
from dying import STEPS, Living, process
from forwarder import Forwarder
from pincompute.api.names import SUBMISSION
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.submission import outbox
from pincompute.submission.database import open_database
from pincompute.submission.record import State
from pincompute.submission.tables import audit, revisions
from workloads import HELLO, cluster, new_project

pytestmark = pytest.mark.cluster

SERVICE = NOUNS["PinterestService"]
VERBS = {"deploy": (1, 2), "set": (1, 2), "scale": (2, 4), "delete": (0, 0)}
"""The revision of the workload afterwards, and how many pods it holds then."""


class Ask(NamedTuple):
    """One submission, under a key of its own."""

    project: str
    verb: str
    name: str

    async def send(self, http: aiohttp.ClientSession, verb: str = "") -> tuple[int, str]:
        """The status, and the id under which it is on record."""
        projects, key = f"/v1/projects/{self.project}", {"Idempotency-Key": f"{verb or self.verb} {self.name}"}
        workload = f"{projects}/workloads/{self.name}"
        match verb or self.verb:
            case "deploy" | "set" as way:
                text = "---\n".join(HELLO.replace("{name: hello}", f"{{name: {each}}}") for each in self.names)
                path = f"{projects}/{'sets' if way == 'set' else 'submissions'}"
                request = http.post(path, data=text.encode(), headers=key)
            case "scale":
                body = b'{"change": "scale", "copies": 3}'
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
        """Of workloads that share a fate."""
        return [self.name, f"{self.name}-too"] if self.verb == "set" else [self.name]

    async def outcome(self, http: aiohttp.ClientSession, verb: str = "") -> str:
        """Asked again under the same key until it has arrived."""
        async with asyncio.timeout(60):
            while True:
                status, id_ = await self.send(http, verb)
                if status != 202:
                    return id_


@pytest.mark.parametrize(
    ("verb", "where"), [*((verb, "sqlite") for verb in VERBS), ("deploy", "postgresql")], indirect=["where"]
)
async def test_killed_at_each_step(plane: ControlPlane, tmp_path: Path, verb: str, where: str) -> None:
    async with cluster(plane) as client:
        project = await new_project(client)
        asked = [Ask(project, verb, f"w{number}") for number in range(len(STEPS))]
        if verb in ("scale", "delete"):
            async with process(plane, tmp_path, where) as living:
                await asyncio.gather(*(each.outcome(living.http, "deploy") for each in asked))
        heard: list[str] = []
        told: list[str] = []
        for number, step in enumerate(STEPS.values()):
            async with process(plane, tmp_path, where, step) as desk:
                # Each says what became of what killed the one before it.
                told += [await each.outcome(desk.http) for each in asked[:number][-1:]]
                heard.append(await _last_words(desk, asked[number]))
        async with process(plane, tmp_path, where) as desk:
            told.append(await asked[-1].outcome(desk.http))
            # And all of them are answered once more as they were.
            assert [await each.outcome(desk.http) for each in asked] == told
            assert [id_ or told[number] for number, id_ in enumerate(heard)] == told
            await _as_it_is(client, where, asked, told)


async def test_killed_when_it_has_answered_and_the_cluster_is_away(
    plane: ControlPlane, tmp_path: Path, where: str
) -> None:
    async with cluster(plane) as client, Forwarder(plane.port) as road:
        ask = Ask(await bounded(client, 10), "deploy", "w0")
        async with process(plane, tmp_path, where, road=road.port) as desk:
            await Ask(ask.project, "deploy", "before").outcome(desk.http)
            await road.cut()
            status, id_ = await ask.send(desk.http)
            assert status == 202
            await desk.kill()
        async with process(plane, tmp_path, where) as desk:
            assert await ask.outcome(desk.http) == id_
        assert await _there(client, ask.project, ask.name) == (1, id_)
        await client.delete(NOUNS["Project"], ask.project)


@pytest.mark.parametrize("step", ["taken by the carrier", "applied", "delivered, and not yet on disk"])
@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
async def test_where_one_of_two_dies_the_other_goes_on(
    plane: ControlPlane, tmp_path: Path, where: str, step: str
) -> None:
    async with cluster(plane) as client, process(plane, tmp_path, where, STEPS[step]) as first:
        project = await new_project(client)
        asked = [Ask(project, "deploy", name) for name in ("w0", "w1", "w2")]
        # It is this one that carries, whoever accepts.
        told = [await asked[0].outcome(first.http)]
        async with process(plane, tmp_path, where) as second:
            told.append(await asked[1].outcome(second.http))
            first.armed.set()
            told.append(await asked[2].outcome(second.http))
            await first.death()
            assert [await each.outcome(second.http) for each in asked] == told
            await _as_it_is(client, where, asked, told)


async def _last_words(desk: Living, ask: Ask) -> str:
    """The id under which it was answered, where it was, before death."""
    desk.armed.set()
    id_ = ""
    with suppress(aiohttp.ClientConnectionError):
        _, id_ = await ask.send(desk.http)
    await desk.death()
    return id_


async def _as_it_is(client: Client, where: str, asked: list[Ask], told: list[str]) -> None:
    """Each was done once, and record, ledger and cluster say the same."""
    database = await open_database(where)
    revision, pods = VERBS[asked[0].verb]
    verb = "deploy" if asked[0].verb == "set" else asked[0].verb
    each_by_itself = [
        (ask.project, name, id_)
        for ask, ids in zip(asked, told, strict=True)
        for name, id_ in zip(ask.names, ids.split(), strict=True)
    ]
    for project, name, id_ in each_by_itself:
        kept = await database.do(partial(kept_of, project=project, name=name))
        assert [(each.id, each.state) for each in kept if each.verb == verb] == [(id_, State.DELIVERED)]
        assert await database.do(partial(_kept, id_=id_)) == (2, bool(revision))
        assert await _there(client, project, name) == (revision, id_ if revision else "")
    assert await database.do(partial(outbox.waiting, cluster="main")) == []
    await holds(database, asked[0].project, pods * len(each_by_itself))
    await database.close()


def _kept(connection: sql.Connection, id_: str) -> tuple[int, int]:
    """Lines of the audit, one of each judge, and revisions."""
    counts = [
        sql.select(sql.func.count()).select_from(each).where(each.c.submission == id_) for each in (audit, revisions)
    ]
    lines, accepted = (connection.execute(each).scalar_one() for each in counts)
    return lines, accepted


async def _there(client: Client, project: str, name: str) -> tuple[int, str]:
    """How often it was changed, and by which submission last."""
    try:
        metadata = (await client.get(SERVICE, name, project))["metadata"]
    except NotFound:
        return 0, ""
    return metadata["generation"], metadata["annotations"][SUBMISSION]
