"""Kubernetes as a platform: what was foreseen is not thought out again, and what may be there is looked at first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.admission import admit_workload
from pincompute.api.change import Scale
from pincompute.api.documents import read_one
from pincompute.api.names import DESK, HAND, SUBMISSION
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.base.reasons import CHANGED_MEANWHILE
from pincompute.controller.amend import resource_of
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client, Listing
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
    lists = 0
    loses = False

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads += resource == SERVICES
        return await super().get(resource, name, namespace)

    async def list(self, resource: Resource, *given: Any, **words: Any) -> Listing:
        self.lists += resource == SERVICES
        return await super().list(resource, *given, **words)

    async def create(self, *given: Any, **words: Any) -> dict[str, Any]:
        done = await super().create(*given, **words)
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
    async with asyncio.timeout(60):
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


async def test_a_list_is_from_memory_and_has_whatever_was_delivered(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        for number in range(5):
            workload = of(HELLO.replace("name: hello", f"name: hello-{number}"), project)
            await sent(here, workload)
            assert len(await here.workloads(project)) == number + 1
        amended = await here.amend(project, "hello-0", Scale(copies=3), None)
        await here.deliver("s-2", amended.place, amended.order)
        (scaled,) = (each for each in await here.workloads(project) if each.metadata.name == "hello-0")
        assert msgspec.to_builtins(scaled.spec)["replicas"] == 3
        for number in range(5):
            gone = await here.remove(project, f"hello-{number}", "", None)
            await here.deliver("s-3", gone.place, gone.order)
            assert len(await here.workloads(project)) == 4 - number
        assert client.lists == 0


async def test_what_was_seen_is_asked_for_by_its_kind_alone(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        workload, workloads = of(HELLO, project), Workloads(client, kind_of=here.kind_of)
        await seen(here, workload, await sent(here, workload))
        before = client.lists
        assert (await workloads.find(project, "hello")).kind == "PinterestService"
        assert client.lists == before
        # Somebody makes another of its name past the desk, which is not said to be it.
        again = HELLO.replace("PinterestService", "PinterestJobSet").replace("port: 8080", "tasks: 1")
        other = of(again, project)
        made = await client.create(NOUNS[other.kind], resource_of(other), manager=HAND)
        await seen(here, other, int(made["metadata"]["resourceVersion"]))
        assert (await workloads.find(project, "hello")).kind == "PinterestService", "the eldest"
        assert client.lists > before
        # And what it was last seen to be may not be there any more.
        await client.delete(SERVICES, "hello", project)
        assert (await workloads.find(project, "hello")).kind == "PinterestJobSet"


async def test_where_nothing_is_seen_any_more_the_cluster_is_asked(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        await sent(here, of(HELLO, project))
        assert [each.metadata.name for each in await here.workloads(project)] == ["hello"]
        assert client.lists == 1


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


async def test_what_was_taken_and_is_told_again_is_known_by_its_submission(plane: ControlPlane) -> None:
    """Also by a desk that has just begun, and is told that there is none yet."""
    async with platform(plane, blind=True) as (here, client, project):
        workload = of(HELLO, project)
        written = await sent(here, workload)
        async with platform(plane, blind=True) as (there, _, _):
            assert await sent(there, workload) == written
            # And what another desk made goes on.
            await sent(there, of(HELLO.replace("8080", "8081"), project), "s-2")
        found = await client.get(SERVICES, "hello", project)
        assert (found["spec"]["port"], found["metadata"]["annotations"][SUBMISSION]) == (8081, "s-2")


async def test_what_somebody_else_makes_in_the_same_moment_is_left_alone(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        rendered = await here.render(of(HELLO, project), None)
        theirs = of(HELLO.replace("8080", "5000"), project)
        made = await client.create(SERVICES, msgspec.to_builtins(theirs), manager=HAND)
        with pytest.raises(Refused) as refused:
            await here.deliver("s-1", rendered.place, rendered.order)
        (problem,) = refused.value.problems
        assert (problem.reason, problem.what) == (
            CHANGED_MEANWHILE,
            "somebody else made hello just now, and it was left alone",
        )
        assert await client.get(SERVICES, "hello", project) == made


async def test_what_its_file_no_longer_says_goes_also_where_it_was_born_with_it(plane: ControlPlane) -> None:
    """Whoever else has written there keeps what is theirs."""
    async with platform(plane, blind=True) as (here, client, project):
        more = HELLO.replace("port: 8080", "port: 8080, environment: {A: '1', B: '2'}")
        await sent(here, of(more, project))
        body = {"metadata": {"labels": {"theirs": "stays"}}}
        await client.patch(SERVICES, "hello", project, body, style="merge", manager=HAND)
        await sent(here, of(more.replace(", B: '2'", ""), project), "s-2")
        found = await client.get(SERVICES, "hello", project)
        assert found["spec"]["environment"] == {"A": "1"}
        assert found["metadata"]["labels"]["theirs"] == "stays"
        managers = [(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]]
        assert sorted(managers) == [(DESK, "Apply"), (HAND, "Update")]
        await sent(here, of(HELLO, project), "s-3")
        assert "environment" not in (await client.get(SERVICES, "hello", project))["spec"]


class Restless(Asking):
    """Each time somebody says that it was born by POST, its status has moved."""

    moved = 0

    async def patch(self, *given: Any, **words: Any) -> dict[str, Any]:
        if words["style"] == "json" and self.moved < 3:
            self.moved += 1
            resource, name, project = given[:3]
            body = {"metadata": {"annotations": {"moved": str(self.moved)}}}
            await super().patch(resource, name, project, body, style="merge", manager=HAND)
        return await super().patch(*given, **words)


async def test_a_status_that_moves_keeps_no_deploy_from_being_made(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (_, hand, project), Restless(plane.access(), agent="desk") as client:
        workloads = Workloads(client)
        await workloads.write(of(HELLO, project), manager=DESK)
        await workloads.write(of(HELLO.replace("8080", "8081"), project), manager=DESK)
        assert client.moved == 3
        assert (await hand.get(SERVICES, "hello", project))["spec"]["port"] == 8081


async def test_what_was_deleted_is_new_again(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        workload = of(HELLO, project)
        await seen(here, workload, await sent(here, workload))
        await client.delete(SERVICES, "hello", project)
        async with asyncio.timeout(60):
            while here.look(Place.of(workload)).footprint is not None:  # noqa: ASYNC110  (as above)
                await asyncio.sleep(0.01)
        await sent(here, workload, "s-2")
        assert client.reads == 0
