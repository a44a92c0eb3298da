"""Many concurrent callers, several desks, an unreachable cluster: the quota is never exceeded, and nothing is lost,
executed twice or leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from control_plane import ControlPlane
from desk_fixtures import ADMINISTRATOR, build_verifier, project_with_pod_quota, submit_one, wait_ledger_holds
from pincompute.api.change import Scale
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.desk import Desk
from pincompute.desk.http.responses import submission_response
from pincompute.desk.process import running_desk
from pincompute.desk.request import ApplyChange, DeployDocuments, RemoveWorkload
from pincompute.desk.store.database import open_database
from pincompute.desk.store.record import SubmissionState
from pincompute.kube.client import Client
from pincompute.kube.watch import DELETED
from tcp_forwarder import TcpForwarder
from workloads import HELLO, cluster_client

pytestmark = pytest.mark.cluster

KEY = "the same"
SERVICE = CUSTOM_RESOURCES["PinterestService"]
QUOTA_PODS, CALLERS, STEPS = 60, 8, 6


def _one_pod(name: str) -> str:
    """A service of one pod, also while the pod is replaced."""
    return HELLO.replace("hello}", f"{name}}}").replace("8080", "8080, rollout: {surge: 0, unavailable: 1}")


async def test_concurrent_deploys_are_accepted_up_to_the_quota(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    async with cluster_client(plane) as client:
        project = await project_with_pod_quota(client, 10)
        database = await open_database(where)
        async with running_desk(database, client, build_verifier(tmp_path)) as desk:
            await desk.wait_ready()
            desk.pipeline.delivery_timeout_s = 60.0
            submitted = await asyncio.gather(
                *(submit_one(desk, DeployDocuments(project, _one_pod(f"w{number}"))) for number in range(30))
            )
            accepted = [each for each in submitted if each.state is not SubmissionState.REFUSED]
            refused = [each for each in submitted if each.state is SubmissionState.REFUSED]
            assert len(accepted) == 10
            assert {each.decisions[0].rule for each in refused} == {"QuotaTooSmall"}
            await wait_ledger_holds(database, project, 10)
            assert len((await client.list(SERVICE, project)).items) == 10
            # A deletion frees quota, whether by the desk or past it.
            await client.delete(SERVICE, accepted[0].workload_key.name, project)
            await submit_one(desk, RemoveWorkload(project, accepted[1].workload_key.name))
            await wait_ledger_holds(database, project, 8)
            late = await submit_one(desk, DeployDocuments(project, _one_pod("late")))
            assert late.state is SubmissionState.DELIVERED
        await database.close()
        await client.delete(CUSTOM_RESOURCES["Project"], project)


class Crowd(NamedTuple):
    """Callers at several desks that request more than the quota together, and sometimes shrink or delete a workload."""

    desks: Sequence[Desk]
    project: str
    refused: list[tuple[str, int]]

    async def run_caller(self, number: int) -> None:
        random, desk = Random(number), self.desks[number % len(self.desks)]
        mine: dict[str, int] = {}
        for step in range(STEPS):
            name, replicas = f"w{number}-{step}", random.randint(1, 9)
            if await self.deploy(desk, name, replicas):
                mine[name] = replicas
            if mine and random.random() < 0.5:
                name = random.choice(sorted(mine))
                fewer = mine.pop(name) // 2
                if fewer and random.random() < 0.5:
                    done = await submit_one(desk, ApplyChange(self.project, name, Scale(replicas=fewer)))
                    mine[name] = fewer
                else:
                    done = await submit_one(desk, RemoveWorkload(self.project, name))
                assert done.state is SubmissionState.DELIVERED

    async def deploy(self, desk: Desk, name: str, replicas: int) -> bool:
        text = _one_pod(name).replace("port:", f"replicas: {replicas}, port:")
        done = await submit_one(desk, DeployDocuments(self.project, text))
        if done.state is SubmissionState.REFUSED:
            assert done.decisions[0].rule in {"QuotaTooSmall", "QuotaUsedUp"}
            self.refused.append((name, replicas))
        return done.state is SubmissionState.DELIVERED


async def _record_totals(client: Client, project: str, sizes: dict[str, int], totals: list[int]) -> None:
    """Appends the number of wanted pods of all services after each write to the cluster."""
    async with aclosing(client.watch(SERVICE, project)) as events:
        async for event in events:
            name = event.object["metadata"]["name"]
            sizes[name] = 0 if event.type == DELETED else event.object["spec"].get("replicas", 1)
            totals.append(sum(sizes.values()))


async def test_quota_is_never_exceeded_and_nearly_used_up_under_concurrency(
    plane: ControlPlane, where: str, tmp_path: Path
) -> None:
    """With several desks on PostgreSQL; SQLite has one desk."""
    async with cluster_client(plane) as client, AsyncExitStack() as stack:
        project = await project_with_pod_quota(client, QUOTA_PODS)
        sizes: dict[str, int] = {}
        totals: list[int] = []
        watching = asyncio.create_task(_record_totals(client, project, sizes, totals))
        desks = [await _start_desk(stack, where, client, tmp_path) for _ in range(3 if "://" in where else 1)]
        crowd = Crowd(desks, project, [])
        await asyncio.gather(*map(crowd.run_caller, range(CALLERS)))
        database = await open_database(where)
        # Quota that was freed last is available to the refused callers.
        await wait_ledger_holds(database, project, await _wanted_pods(client, project))
        for name, replicas in tuple(crowd.refused):
            await crowd.deploy(desks[0], f"{name}-again", replicas)
        for number in range(9):
            await crowd.deploy(desks[0], f"small-{number}", 1)
        used = await _wanted_pods(client, project)
        await wait_ledger_holds(database, project, used)
        async with asyncio.timeout(60):
            while sum(sizes.values()) != used:  # noqa: ASYNC110  (there is no event for it)
                await asyncio.sleep(0.01)
        watching.cancel()
        await database.close()
        await client.delete(CUSTOM_RESOURCES["Project"], project)
        print(f"{len(desks)} desks: at most {max(totals)} and finally {used} of {QUOTA_PODS} pods")
    assert len(crowd.refused) > CALLERS
    assert max(totals) <= QUOTA_PODS
    assert used >= 0.95 * QUOTA_PODS


async def _start_desk(stack: AsyncExitStack, where: str, client: Client, folder: Path) -> Desk:
    database = await open_database(where)
    stack.push_async_callback(database.close)
    desk = await stack.enter_async_context(running_desk(database, client, build_verifier(folder)))
    await desk.wait_ready()
    desk.pipeline.delivery_timeout_s = 60.0
    return desk


async def _wanted_pods(client: Client, project: str) -> int:
    return sum(each["spec"].get("replicas", 1) for each in (await client.list(SERVICE, project)).items)


async def test_submission_is_delivered_once_the_cluster_is_reachable_again(
    plane: ControlPlane, where: str, tmp_path: Path
) -> None:
    async with cluster_client(plane) as client, TcpForwarder(plane.port) as forwarder:
        project = await project_with_pod_quota(client, 10)
        database = await open_database(where)
        async with (
            Client(plane.access(port=forwarder.port), agent="desk") as disconnected,
            running_desk(database, disconnected, build_verifier(tmp_path)) as desk,
        ):
            await desk.wait_ready()
            await forwarder.cut()
            request, context = DeployDocuments(project, _one_pod("hello")), ADMINISTRATOR._replace(idempotency_key=KEY)
            accepted = await submit_one(desk, request, context)
            assert accepted.state is SubmissionState.ACCEPTED
            assert submission_response(accepted).status == 202
            # It is not waited for if the caller does not want that.
            desk.pipeline.delivery_timeout_s = 3600.0
            at_once = await submit_one(desk, request, context._replace(wait_for_delivery=False))
            assert (at_once.id, at_once.state) == (accepted.id, SubmissionState.ACCEPTED)
            forwarder.restore()
            await wait_ledger_holds(database, project, 1)
            desk.pipeline.delivery_timeout_s = 60.0
            repeated = await submit_one(desk, request, context)
            assert (repeated.id, repeated.state) == (accepted.id, SubmissionState.DELIVERED)
            assert repeated.attempts > 0
        await database.close()
        await client.delete(CUSTOM_RESOURCES["Project"], project)
