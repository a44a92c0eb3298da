"""The Kubernetes platform: reused footprints, reads before writes, lists from the cache, and repeated deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.change import Scale
from pincompute.api.documents import read_document
from pincompute.api.names import CLI_MANAGER, DESK, SUBMISSION_ANNOTATION
from pincompute.api.validation import parse_workload
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.base.reasons import CONFLICT
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client, ListResult
from pincompute.kube.errors import Unreachable
from pincompute.kube.resource import Resource
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.kubernetes import platform as kubernetes_platform
from pincompute.platforms.kubernetes.changes import manifest_of
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from pincompute.platforms.protocol import ObservedUsage, PlatformUnavailable
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVICES = CUSTOM_RESOURCES["PinterestService"]


class Asking(Client):
    """Counts reads, and can lose the next response."""

    reads = 0
    lists = 0
    loses = False

    async def get(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        self.reads += resource == SERVICES
        return await super().get(resource, name, namespace)

    async def list(self, resource: Resource, *given: Any, **words: Any) -> ListResult:
        self.lists += resource == SERVICES
        return await super().list(resource, *given, **words)

    async def create(self, *given: Any, **words: Any) -> dict[str, Any]:
        done = await super().create(*given, **words)
        if self.loses:
            self.loses = False
            raise Unreachable("the desk", "the answer was lost")
        return done


@asynccontextmanager
async def platform(
    plane: ControlPlane, *, blind: bool = False
) -> AsyncGenerator[tuple[KubernetesPlatform, Asking, str]]:
    """With `blind`, its cache is filled and receives no further events."""
    async with cluster_client(plane) as other_client, Asking(plane.access(), agent="desk") as client:
        found, project = KubernetesPlatform(client), await new_project(other_client)
        running = asyncio.create_task(found.run())
        try:
            await found.wait_synced()
            if blind:
                running.cancel()
            yield found, client, project
        finally:
            running.cancel()
            await asyncio.wait({running})


def of(text: str, project: str) -> Workload:
    return parse_workload(read_document(text), project)


async def sent(here: KubernetesPlatform, workload: Workload, name: str = "s-1") -> int:
    rendered = await here.render(workload, None)
    return (await here.deliver(name, rendered.workload_key, rendered.command)).written_revision


async def seen(here: KubernetesPlatform, workload: Workload, revision: int) -> ObservedUsage:
    """The usage, once it includes a write."""
    async with asyncio.timeout(60):
        while (found := here.observed_usage(WorkloadKey.of(workload))).revision < revision:  # noqa: ASYNC110  (the cache sends no notification)
            await asyncio.sleep(0.01)
    return found


@pytest.mark.parametrize("example", ["hello", "job-set", "cron-job", "stateful-set", "training-job"])
async def test_footprint_of_a_rendered_workload_is_reused(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    thought = [0]

    def held(snapshot: Any) -> Any:
        thought[0] += 1
        return before(snapshot)

    before = kubernetes_platform.current_footprint
    monkeypatch.setattr(kubernetes_platform, "current_footprint", held)
    async with platform(plane) as (here, client, project):
        workload = of((EXAMPLES / f"{example}.yaml").read_text(), project)
        foreseen = await seen(here, workload, await sent(here, workload))
        assert thought == [0]
        assert foreseen.footprint is not None
        # An edit makes the prediction unusable: the footprint is computed again, and is the same.
        body = {"metadata": {"annotations": {"edited": "once"}}}
        name = workload.metadata.name
        after = await client.patch(
            CUSTOM_RESOURCES[workload.kind], name, project, body, style="merge", manager=CLI_MANAGER
        )
        found = await seen(here, workload, int(after["metadata"]["resourceVersion"]))
        assert thought == [1]
        assert found.footprint == foreseen.footprint


async def test_only_possibly_existing_workloads_are_read_before_a_write(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        workload = of(HELLO, project)
        await sent(here, workload)
        assert client.reads == 0
        await sent(here, workload, "s-2")
        assert client.reads == 1


async def test_list_is_served_from_cache_and_includes_own_writes(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        for number in range(5):
            workload = of(HELLO.replace("name: hello", f"name: hello-{number}"), project)
            await sent(here, workload)
            assert len(await here.list_workloads(project)) == number + 1
        amended = await here.render_change(project, "hello-0", Scale(replicas=3), None)
        await here.deliver("s-2", amended.workload_key, amended.command)
        (scaled,) = (each for each in await here.list_workloads(project) if each.metadata.name == "hello-0")
        assert msgspec.to_builtins(scaled.spec)["replicas"] == 3
        for number in range(5):
            gone = await here.render_delete(project, f"hello-{number}", "", None)
            await here.deliver("s-3", gone.workload_key, gone.command)
            assert len(await here.list_workloads(project)) == 4 - number
        assert client.lists == 0


async def test_cached_workload_is_read_by_its_kind_only(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        workload, workloads = of(HELLO, project), WorkloadClient(client, kind_of=here.kind_of)
        await seen(here, workload, await sent(here, workload))
        before = client.lists
        assert (await workloads.get_workload(project, "hello")).kind == "PinterestService"
        assert client.lists == before
        # Another workload of the same name is created past the desk, and must not be mistaken for it.
        again = HELLO.replace("PinterestService", "PinterestJobSet").replace("port: 8080", "tasks: 1")
        other = of(again, project)
        made = await client.create(CUSTOM_RESOURCES[other.kind], manifest_of(other), manager=CLI_MANAGER)
        await seen(here, other, int(made["metadata"]["resourceVersion"]))
        assert (await workloads.get_workload(project, "hello")).kind == "PinterestService", "the eldest"
        assert client.lists > before
        # The cached kind may be outdated.
        await client.delete(SERVICES, "hello", project)
        assert (await workloads.get_workload(project, "hello")).kind == "PinterestJobSet"


async def test_list_is_read_from_the_cluster_without_a_live_watch(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        await sent(here, of(HELLO, project))
        assert [each.metadata.name for each in await here.list_workloads(project)] == ["hello"]
        assert client.lists == 1


async def test_repeated_delivery_does_not_undo_an_edit(plane: ControlPlane) -> None:
    """The same command again, before its first write is in the cache."""
    async with platform(plane, blind=True) as (here, client, project):
        rendered = await here.render(of(HELLO, project), None)
        client.loses = True
        with pytest.raises(PlatformUnavailable):
            await here.deliver("s-1", rendered.workload_key, rendered.command)
        body = {"spec": {"port": 5000}}
        await client.patch(SERVICES, "hello", project, body, style="merge", manager=CLI_MANAGER)
        await here.deliver("s-1", rendered.workload_key, rendered.command)
        assert (await client.get(SERVICES, "hello", project))["spec"]["port"] == 5000


async def test_repeated_delivery_is_recognized_by_its_submission(plane: ControlPlane) -> None:
    """Also by a desk that has just started, and believes that the workload does not exist."""
    async with platform(plane, blind=True) as (here, client, project):
        workload = of(HELLO, project)
        written = await sent(here, workload)
        async with platform(plane, blind=True) as (there, _, _):
            assert await sent(there, workload) == written
            # A workload that another desk has written is updated.
            await sent(there, of(HELLO.replace("8080", "8081"), project), "s-2")
        found = await client.get(SERVICES, "hello", project)
        assert (found["spec"]["port"], found["metadata"]["annotations"][SUBMISSION_ANNOTATION]) == (8081, "s-2")


async def test_concurrently_created_workload_is_not_overwritten(plane: ControlPlane) -> None:
    async with platform(plane, blind=True) as (here, client, project):
        rendered = await here.render(of(HELLO, project), None)
        theirs = of(HELLO.replace("8080", "5000"), project)
        made = await client.create(SERVICES, msgspec.to_builtins(theirs), manager=CLI_MANAGER)
        with pytest.raises(Refused) as refused:
            await here.deliver("s-1", rendered.workload_key, rendered.command)
        (problem,) = refused.value.problems
        assert (problem.reason, problem.what) == (
            CONFLICT,
            "hello was created by another client in the meantime; nothing was written",
        )
        assert await client.get(SERVICES, "hello", project) == made


async def test_field_removed_from_the_file_is_removed_after_creation_by_post(plane: ControlPlane) -> None:
    """Fields of other managers stay."""
    async with platform(plane, blind=True) as (here, client, project):
        more = HELLO.replace("port: 8080", "port: 8080, environment: {A: '1', B: '2'}")
        await sent(here, of(more, project))
        body = {"metadata": {"labels": {"theirs": "stays"}}}
        await client.patch(SERVICES, "hello", project, body, style="merge", manager=CLI_MANAGER)
        await sent(here, of(more.replace(", B: '2'", ""), project), "s-2")
        found = await client.get(SERVICES, "hello", project)
        assert found["spec"]["environment"] == {"A": "1"}
        assert found["metadata"]["labels"]["theirs"] == "stays"
        managers = [(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]]
        assert sorted(managers) == [(DESK, "Apply"), (CLI_MANAGER, "Update")]
        await sent(here, of(HELLO, project), "s-3")
        assert "environment" not in (await client.get(SERVICES, "hello", project))["spec"]


class Restless(Asking):
    """The status changes before each write of field ownership."""

    moved = 0

    async def patch(self, *given: Any, **words: Any) -> dict[str, Any]:
        if words["style"] == "json" and self.moved < 3:
            self.moved += 1
            resource, name, project = given[:3]
            body = {"metadata": {"annotations": {"moved": str(self.moved)}}}
            await super().patch(resource, name, project, body, style="merge", manager=CLI_MANAGER)
        return await super().patch(*given, **words)


async def test_status_updates_do_not_conflict_with_a_deploy(plane: ControlPlane) -> None:
    async with (
        platform(plane, blind=True) as (_, other_client, project),
        Restless(plane.access(), agent="desk") as client,
    ):
        workloads = WorkloadClient(client)
        await workloads.write(of(HELLO, project), manager=DESK)
        await workloads.write(of(HELLO.replace("8080", "8081"), project), manager=DESK)
        assert client.moved == 3
        assert (await other_client.get(SERVICES, "hello", project))["spec"]["port"] == 8081


async def test_deleted_workload_is_created_again(plane: ControlPlane) -> None:
    async with platform(plane) as (here, client, project):
        workload = of(HELLO, project)
        await seen(here, workload, await sent(here, workload))
        await client.delete(SERVICES, "hello", project)
        async with asyncio.timeout(60):
            while here.observed_usage(WorkloadKey.of(workload)).footprint is not None:  # noqa: ASYNC110  (as above)
                await asyncio.sleep(0.01)
        await sent(here, workload, "s-2")
        assert client.reads == 0


def expiring(expires: str) -> str:
    return HELLO.replace("port: 8080", f"port: 8080, expires: {expires}")


async def test_deploy_of_a_life_that_is_over_is_refused(plane: ControlPlane) -> None:
    """A span counts from the creation of the workload that exists, not from that of the file."""
    async with platform(plane) as (here, _, project):
        past = of(expiring("2026-01-01"), project)
        with pytest.raises(Refused, match="expires is 2026-01-01, which was over at 2026-01-02T00:00:00Z"):
            await here.render(past, None)
        with pytest.raises(Refused, match="expires is 2026-01-01"):
            await here.preview([past])
        workload = of(expiring("1h"), project)
        await seen(here, workload, await sent(here, workload))
        later = datetime.now(UTC) + timedelta(hours=2)

        def now(_: SystemClock) -> datetime:
            return later

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SystemClock, "now", now)
            with pytest.raises(Refused, match=r"expires is 1h, which was over at .*, counted from its creation at"):
                await here.render(workload, None)
            assert (await here.render(of(expiring("3h"), project), None)).workload
