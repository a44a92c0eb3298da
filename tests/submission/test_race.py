"""A desk that many ask at once, and one that is cut off from its cluster: nothing over, lost, doubled or leaked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from control_plane import ControlPlane
from desks import OURS, bounded, builds_in, holds
from forwarder import Forwarder
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.submission.answers import became
from pincompute.submission.database import open_database
from pincompute.submission.process import at_work
from pincompute.submission.record import State
from workloads import HELLO, cluster

pytestmark = pytest.mark.cluster

KEY = "the same"
SERVICE = NOUNS["PinterestService"]


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
