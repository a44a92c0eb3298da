"""Waits until the nodes of a platform are ready."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import NODES

NODES_READY_TIMEOUT_S = 120.0


class _Meta(msgspec.Struct):
    name: str


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    message: str = ""
    last_heartbeat_time: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    def ready(self, since: str) -> bool:
        """Whether the Ready condition is true and newer than `since`.

        A node that was ready before a restart keeps the condition until it times out, so an old heartbeat is ignored.
        """
        return any(
            each.type == "Ready" and each.status == "True" and each.last_heartbeat_time >= since
            for each in self.status.conditions
        )


async def await_nodes(platform: Platform, since: str, progress: Progress) -> None:
    """Wait until all nodes are ready. `since` is the start of the kubelet, as a timestamp of Kubernetes."""
    expected = platform.simulated.count + platform.real
    ready: set[str] = set()
    try:
        async with (
            asyncio.timeout(NODES_READY_TIMEOUT_S),
            Client(load_kubeconfig(platform.home.kubeconfig), agent="pin") as client,
        ):
            while len(ready) < expected:
                async with aclosing(client.watch(NODES, type=_Node)) as events:
                    async for event in events:
                        node: _Node = event.object
                        real = node.metadata.name == platform.node_name
                        if node.ready(since if real else ""):
                            ready.add(node.metadata.name)
                        if len(ready) >= expected:
                            break
                        progress.update(f"{len(ready)} of {expected} nodes ready")
    except TimeoutError as error:
        raise Refused(
            Problem(
                PART_FAILED,
                f"{len(ready)} of {expected} nodes ready after {NODES_READY_TIMEOUT_S:.0f} s",
                note="" if platform.node_name in ready or not platform.real else f"not ready: {platform.node_name}",
                next=f"pin kubectl --name {platform.name} describe nodes",
            )
        ) from error
