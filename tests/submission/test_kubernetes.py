"""Kubernetes as a platform: what was foreseen is not thought out again, and what may be there is looked at first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from pincompute.api.admission import admit_workload
from pincompute.api.documents import read_one
from pincompute.api.names import HAND
from pincompute.api.workload import Workload
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import Unreachable
from pincompute.kube.resource import Resource
from pincompute.planning.quotas.footprint import Place
from pincompute.submission import kubernetes
from pincompute.submission.kubernetes import Kubernetes
from pincompute.submission.platform import Away, Seen
from workloads import HELLO, cluster, new_project

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVICES = NOUNS["PinterestService"]


class Asking(Client):
    """It counts what it reads, and may lose the next answer."""

    reads = 0
    loses = False

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads += resource == SERVICES
        return await super().get(resource, name, namespace)

    async def apply(self, *given: Any, **words: Any) -> dict[str, Any]:
        done = await super().apply(*given, **words)
        if self.loses:
            self.loses = False
            raise Unreachable("the desk", "the answer was lost")
        return done


@asynccontextmanager
async def platform(plane: ControlPlane, *, blind: bool = False) -> AsyncGenerator[tuple[Kubernetes, Asking, str]]:
    """Where it is blind, it has seen all there is, and sees nothing of what comes."""
    async with cluster(plane) as hand, Asking(plane.access(), agent="desk") as client:
        found, project = Kubernetes(client), await new_project(hand)
        running = asyncio.create_task(found.run())
        try:
            await found.seen()
            if blind:
                running.cancel()
            yield found, client, project
        finally:
            running.cancel()
            await asyncio.wait({running})


def of(text: str, project: str) -> Workload:
    return admit_workload(read_one(text), project)


async def sent(here: Kubernetes, workload: Workload, name: str = "s-1") -> int:
    rendered = await here.render(workload, None)
    return (await here.deliver(name, rendered.place, rendered.order)).written


async def seen(here: Kubernetes, workload: Workload, revision: int) -> Seen:
    """As soon as it shows what was written."""
    async with asyncio.timeout(20):
        while (found := here.look(Place.of(workload))).revision < revision:  # noqa: ASYNC110  (who watches is not told)
            await asyncio.sleep(0.01)
    return found


@pytest.mark.parametrize("example", ["hello", "job-set", "cron-job", "stateful-set", "training-job"])
async def test_what_was_foreseen_is_not_thought_out_again(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    thought = [0]

    def held(snapshot: Any) -> Any:
        thought[0] += 1
        return before(snapshot)

    before = kubernetes.held
    monkeypatch.setattr(kubernetes, "held", held)
    async with platform(plane) as (here, client, project):
        workload = of((EXAMPLES / f"{example}.yaml").read_text(), project)
        foreseen = await seen(here, workload, await sent(here, workload))
        assert thought == [0]
        assert foreseen.footprint is not None
        # Who edits it has made something else of it; that it is as before is thought out, and is the same.
        body = {"metadata": {"annotations": {"edited": "once"}}}
        name = workload.metadata.name
        after = await client.patch(NOUNS[workload.kind], name, project, body, style="merge", manager=HAND)
        found = await seen(here, workload, int(after["metadata"]["resourceVersion"]))
        assert thought == [1]
        assert found.footprint == foreseen.footprint


async def test_what_is_new_is_not_read_and_what_may_be_there_is(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        workload = of(HELLO, project)
        await sent(here, workload)
        assert client.reads == 0
        await sent(here, workload, "s-2")
        assert client.reads == 1


async def test_what_was_edited_after_an_answer_was_lost_stays_so(plane: ControlPlane) -> None:
    """The same order again, before it was seen that the first one was taken."""
    async with platform(plane, blind=True) as (here, client, project):
        rendered = await here.render(of(HELLO, project), None)
        client.loses = True
        with pytest.raises(Away):
            await here.deliver("s-1", rendered.place, rendered.order)
        body = {"spec": {"port": 5000}}
        await client.patch(SERVICES, "hello", project, body, style="merge", manager=HAND)
        await here.deliver("s-1", rendered.place, rendered.order)
        assert (await client.get(SERVICES, "hello", project))["spec"]["port"] == 5000


async def test_what_was_deleted_is_new_again(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        workload = of(HELLO, project)
        await seen(here, workload, await sent(here, workload))
        await client.delete(SERVICES, "hello", project)
        async with asyncio.timeout(20):
            while here.look(Place.of(workload)).footprint is not None:  # noqa: ASYNC110  (as above)
                await asyncio.sleep(0.01)
        await sent(here, workload, "s-2")
        assert client.reads == 0
