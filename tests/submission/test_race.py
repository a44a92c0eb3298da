"""A desk that many ask at once, and one that is cut off from its cluster: nothing over, lost, doubled or leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from control_plane import ControlPlane
from desks import OURS, bounded, builds_in, holds
from forwarder import Forwarder
from pincompute.api.change import Scale
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.watch import DELETED
from pincompute.submission.answers import became
from pincompute.submission.database import open_database
from pincompute.submission.desk import Desk
from pincompute.submission.process import at_work
from pincompute.submission.record import State
from workloads import HELLO, cluster

pytestmark = pytest.mark.cluster

KEY = "the same"
SERVICE = NOUNS["PinterestService"]
PODS, PEOPLE, STEPS = 60, 8, 6


def _small(name: str) -> str:
    """One pod, also while it is replaced."""
    return HELLO.replace("hello}", f"{name}}}").replace("8080", "8080, rollout: {surge: 0, unavailable: 1}")


async def test_of_many_at_once_as_many_as_fit_are_taken(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    async with cluster(plane) as client:
        project = await bounded(client, 10)
        database = await open_database(where)
        async with at_work(database, client, builds_in(tmp_path)) as desk:
            await desk.ready()
            desk.patience = 60.0
            asked = await asyncio.gather(*(desk.submit(_small(f"w{each}"), project, OURS) for each in range(30)))
            taken = [each for each in asked if each.state is not State.REFUSED]
            assert len(taken) == 10
            assert {each.decisions[0].rule for each in asked if each.state is State.REFUSED} == {"QuotaTooSmall"}
            await holds(database, project, 10)
            assert len((await client.list(SERVICE, project)).items) == 10
            # What somebody deletes past the desk is free again, and so is what is deleted by it.
            await client.delete(SERVICE, taken[0].place.name, project)
            await desk.delete(project, taken[1].place.name, "", OURS)
            await holds(database, project, 8)
            assert (await desk.submit(_small("late"), project, OURS)).state is State.DELIVERED
        await database.close()
        await client.delete(NOUNS["Project"], project)


class Crowd(NamedTuple):
    """People who all want more than there is, at several desks, and now and then let go of something."""

    desks: Sequence[Desk]
    project: str
    refused: list[tuple[str, int]]

    async def one(self, number: int) -> None:
        chance, desk = Random(number), self.desks[number % len(self.desks)]
        mine: dict[str, int] = {}
        for step in range(STEPS):
            name, copies = f"w{number}-{step}", chance.randint(1, 9)
            if await self.asks(desk, name, copies):
                mine[name] = copies
            if mine and chance.random() < 0.5:
                name = chance.choice(sorted(mine))
                if (fewer := mine.pop(name) // 2) and chance.random() < 0.5:
                    assert (await desk.change(self.project, name, Scale(copies=fewer), OURS)).state is State.DELIVERED
                    mine[name] = fewer
                else:
                    assert (await desk.delete(self.project, name, "", OURS)).state is State.DELIVERED

    async def asks(self, desk: Desk, name: str, copies: int) -> bool:
        text = _small(name).replace("port:", f"replicas: {copies}, port:")
        kept = await desk.submit(text, self.project, OURS)
        if kept.state is State.REFUSED:
            assert kept.decisions[0].rule in {"QuotaTooSmall", "QuotaUsedUp"}
            self.refused.append((name, copies))
        return kept.state is State.DELIVERED


async def _most(client: Client, project: str, sizes: dict[str, int], most: list[int]) -> None:
    """How many pods were wanted of the cluster together, after each write that it has taken."""
    async with aclosing(client.watch(SERVICE, project)) as events:
        async for event in events:
            name = event.object["metadata"]["name"]
            sizes[name] = 0 if event.type == DELETED else event.object["spec"].get("replicas", 1)
            most.append(sum(sizes.values()))


async def test_never_over_and_nearly_used_up_whatever_people_do_at_once(
    plane: ControlPlane, where: str, tmp_path: Path
) -> None:
    """Several desks before one PostgreSQL; a file has one."""
    async with cluster(plane) as client, AsyncExitStack() as stack:
        project = await bounded(client, PODS)
        sizes: dict[str, int] = {}
        most: list[int] = []
        watching = asyncio.create_task(_most(client, project, sizes, most))
        desks = [await _begun(stack, where, client, tmp_path) for _ in range(3 if "://" in where else 1)]
        crowd = Crowd(desks, project, [])
        await asyncio.gather(*map(crowd.one, range(PEOPLE)))
        database = await open_database(where)
        # What was let go of last is free for those who still want it.
        await holds(database, project, await _wanted(client, project))
        for name, copies in tuple(crowd.refused):
            await crowd.asks(desks[0], f"{name}-again", copies)
        for number in range(9):
            await crowd.asks(desks[0], f"small-{number}", 1)
        used = await _wanted(client, project)
        await holds(database, project, used)
        async with asyncio.timeout(60):
            while sum(sizes.values()) != used:  # noqa: ASYNC110  (who watches is not told)
                await asyncio.sleep(0.01)
        watching.cancel()
        await database.close()
        await client.delete(NOUNS["Project"], project)
        print(f"R14, {len(desks)} desks: at most {max(most)} and in the end {used} of {PODS} pods")
    assert len(crowd.refused) > PEOPLE
    assert max(most) <= PODS
    assert used >= 0.95 * PODS


async def _begun(stack: AsyncExitStack, where: str, client: Client, folder: Path) -> Desk:
    database = await open_database(where)
    stack.push_async_callback(database.close)
    desk = await stack.enter_async_context(at_work(database, client, builds_in(folder)))
    await desk.ready()
    desk.patience = 60.0
    return desk


async def _wanted(client: Client, project: str) -> int:
    return sum(each["spec"].get("replicas", 1) for each in (await client.list(SERVICE, project)).items)


async def test_a_cluster_that_is_away_has_it_when_it_is_back(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    async with cluster(plane) as client, Forwarder(plane.port) as road:
        project = await bounded(client, 10)
        database = await open_database(where)
        async with (
            Client(plane.access(port=road.port), agent="desk") as away,
            at_work(database, away, builds_in(tmp_path)) as desk,
        ):
            await desk.ready()
            await road.cut()
            kept = await desk.submit(_small("hello"), project, OURS._replace(key=KEY))
            assert kept.state is State.ACCEPTED
            assert became(kept).status == 202
            # Nor does it wait for the cluster where nobody wants that.
            desk.patience = 3600.0
            at_once = await desk.submit(_small("hello"), project, OURS._replace(key=KEY, waits=False))
            assert (at_once.id, at_once.state) == (kept.id, State.ACCEPTED)
            road.mend()
            # It is carried meanwhile: its outcome comes before that of what is asked after it.
            await holds(database, project, 1)
            desk.patience = 60.0
            again = await desk.submit(_small("hello"), project, OURS._replace(key=KEY))
            assert (again.id, again.state, again.attempts > 0) == (kept.id, State.DELIVERED, True)
        await database.close()
        await client.delete(NOUNS["Project"], project)
