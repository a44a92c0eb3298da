"""`wholeNode` with the real scheduler: no node is shared with a pod of another project, whichever was there first."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from bench.fault_catalogue import SERVICE, TIMEOUT_S, TargetCluster, open_target_cluster

from pincompute.api.change import Scale
from pincompute.api.names import KIND_LABEL, SIMULATED_LABEL, WORKLOAD_LABEL
from pincompute.kube.client import Client
from pincompute.kube.resource import NODES, PODS
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster

POOL = "example.com/pool"


@asynccontextmanager
async def node_pool(client: Client, name: str, size: int) -> AsyncIterator[None]:
    """A label on simulated nodes that run no workload but daemons."""
    pods = (await client.list(PODS, labels=f"{WORKLOAD_LABEL},{KIND_LABEL}!=PinterestDaemon")).items
    used = {each["spec"].get("nodeName") for each in pods}
    nodes = [each["metadata"]["name"] for each in (await client.list(NODES, labels=SIMULATED_LABEL)).items]
    pool = [each for each in nodes if each not in used][:size]
    assert len(pool) == size
    try:
        for node in pool:
            await label_node(client, node, name)
        yield
    finally:
        for node in pool:
            await label_node(client, node, None)


async def label_node(client: Client, node: str, value: str | None) -> None:
    await client.patch(NODES, node, "", {"metadata": {"labels": {POOL: value}}}, style="merge", manager="test")


async def nodes_of(cluster: TargetCluster, name: str) -> list[str]:
    """The node of each pod of a workload."""
    pods = (await cluster.client.list(PODS, cluster.project, labels=f"{WORKLOAD_LABEL}={name}")).items
    return [each["spec"].get("nodeName", "") for each in pods]


async def wait_until_done(cluster: TargetCluster, name: str, generation: int) -> None:
    async with asyncio.timeout(TIMEOUT_S), aclosing(cluster.workloads.follow(cluster.project, name)) as summaries:
        async for summary in summaries:
            if summary.generation >= generation and summary.done:
                return


async def test_whole_node_is_shared_with_no_other_tenant(platform: SharedPlatform) -> None:
    unique = secrets.token_hex(4)
    tenant, whole = f"tenant-{unique}", f"whole-{unique}"
    service: dict[str, Any] = {**SERVICE, "template": {"nodeSelector": {POOL: unique}}}
    platform.pin(
        "project", "create", tenant, "--owner", "team-other", "--quota", "on-demand:pods=20", "--review", "open"
    )
    try:
        async with (
            open_target_cluster(platform.state, platform.name, real=False) as here,
            node_pool(here.client, unique, 3),
        ):
            other = here._replace(project=tenant)
            await wait_until_done(other, "early", (await other.write("early", **service)).generation)
            (taken,) = await nodes_of(other, "early")
            try:
                written = await here.write(whole, **service, wholeNode=True, replicas=2)
                await wait_until_done(here, whole, written.generation)
                own = await nodes_of(here, whole)
                assert len({taken, *own}) == 3, (taken, own)

                # Further pods of the other tenant find room beside its first one only.
                scaled = await other.change("early", Scale(replicas=6))
                await wait_until_done(other, "early", scaled.generation)
                assert await nodes_of(other, "early") == [taken] * 6

                scaled = await here.change(whole, Scale(replicas=3))
                found = await here.wait_for_diagnosis(whole, scaled.generation, wrong=True)
                assert (found.reason, found.next) == (
                    "NoNodeMatches",
                    f"pin edit {whole} --remove wholeNode",
                ), found
                await other.workloads.delete(tenant, "early")
                await wait_until_done(here, whole, scaled.generation)
                assert {*await nodes_of(here, whole)} == {taken, *own}

                # Now every node of the pool is one tenant's.
                written = await other.write("late", **service)
                found = await other.wait_for_diagnosis("late", written.generation, wrong=True)
                assert found.reason == "NoNodeMatches", found
                assert await nodes_of(other, "late") == [""]
            finally:
                await here.workloads.delete(here.project, whole)
    finally:
        platform.pin("kubectl", "delete", "project", tenant)
