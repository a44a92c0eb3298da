"""Waits until the nodes of a platform are ready for work."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import NODES

PATIENCE = 120.0


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
        """A node that was ready once says so until somebody notices that it is gone: only a fresh word counts."""
        return any(
            each.type == "Ready" and each.status == "True" and each.last_heartbeat_time >= since
            for each in self.status.conditions
        )


async def await_nodes(platform: Platform, since: str, progress: Progress) -> None:
    """Return when all are ready; the real node must have said so since then (the spelling of Kubernetes)."""
    expected = platform.simulated.count + platform.real
    ready: set[str] = set()
    try:
        async with asyncio.timeout(PATIENCE), Client(load(platform.home.kubeconfig), agent="pin") as client:
            while len(ready) < expected:
                async with aclosing(client.watch(NODES, type=_Node)) as events:
                    async for event in events:
                        node: _Node = event.object
                        real = node.metadata.name == platform.node_name
                        if node.ready(since if real else ""):
                            ready.add(node.metadata.name)
                        if len(ready) >= expected:
                            break
                        progress.show(f"{len(ready)} of {expected} nodes ready")
    except TimeoutError as error:
        raise Refused(
            Problem(
                PART_FAILED,
                f"{len(ready)} of {expected} nodes were ready after {PATIENCE:.0f} s",
                note=""
                if platform.node_name in ready or not platform.real
                else f"{platform.node_name} is not among them",
                next=f"pin kubectl --name {platform.name} describe nodes",
            )
        ) from error
