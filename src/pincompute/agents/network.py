"""Network agent: enforces the NetworkPolicies of a cluster on one node, with nftables.

It runs in the network namespace of the node. The rules stay in the kernel when it ends, so that the last known policies
are enforced while there is none.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from pincompute.agents.health import STALE_AFTER_S, serve_health
from pincompute.agents.network_rules import Namespace, NetworkPolicy, NodeNetwork, Pod, network_rules
from pincompute.base.backoff import backoff_s
from pincompute.base.http_process import cancel_on_signal
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import NAMESPACES, NETWORK_POLICIES, PODS

APPLY_INTERVAL_S = 0.05
"""Shortest time between two passes, so that a burst of changes causes one."""
RESYNC_INTERVAL_S = 30.0
"""The rules are written again after this time even without a change, in case someone has removed them."""

log = structlog.get_logger()


async def run(kubeconfig: Path, listen: str, nft: Path, network: NodeNetwork) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(load_kubeconfig(kubeconfig), agent="network") as client:
            agent = NetworkAgent(client, nft, network)
            async with serve_health(listen, agent.staleness_s):
                await agent.run()


class NetworkAgent:
    """Watches Pods, Namespaces and NetworkPolicies, and keeps the rules of the node equal to them."""

    def __init__(self, client: Client, nft: Path, network: NodeNetwork) -> None:
        self._nft = nft
        self._network = network
        self._changed = asyncio.Event()
        self._pods = Informer(client, PODS, type=Pod, on_change=lambda _: self._changed.set())
        self._namespaces = Informer(client, NAMESPACES, type=Namespace, on_change=lambda _: self._changed.set())
        self._policies = Informer(client, NETWORK_POLICIES, type=NetworkPolicy, on_change=lambda _: self._changed.set())
        self._enforced = False

    def staleness_s(self) -> float:
        """Seconds since the API server was heard. Without rules in the kernel, the agent counts as stale."""
        informers = (self._pods, self._namespaces, self._policies)
        return max(informer.staleness_s() for informer in informers) if self._enforced else STALE_AFTER_S

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in (self._pods, self._namespaces, self._policies):
                group.create_task(informer.run())
            # Rules of an incomplete view would reject connections that are allowed.
            await self._pods.synced.wait()
            await self._namespaces.synced.wait()
            await self._policies.synced.wait()
            await self._apply_loop()

    async def _apply_loop(self) -> None:
        failures, written = 0, ""
        loop = asyncio.get_running_loop()
        written_at = loop.time()
        while True:
            self._changed.clear()
            namespaces = {namespace.metadata.name: namespace for namespace in self._namespaces.items.values()}
            rules = network_rules(self._pods.items.values(), namespaces, self._policies.items.values(), self._network)
            if rules != written or loop.time() - written_at >= RESYNC_INTERVAL_S:
                why = await self._write(rules)
                failures = failures + 1 if why else 0
                written, written_at = ("" if why else rules), loop.time()
                self._enforced = not why
            await asyncio.sleep(backoff_s(failures, 1) if failures else APPLY_INTERVAL_S)
            try:
                async with asyncio.timeout(0 if failures else RESYNC_INTERVAL_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _write(self, rules: str) -> str:
        """Replaces the rules in the kernel. Returns why it failed."""
        process = await asyncio.create_subprocess_exec(
            self._nft, "-f", "-", stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate(rules.encode())
        if process.returncode == 0:
            log.info("network rules written", lines=rules.count("\n"))
            return ""
        why = errors.decode(errors="replace").strip()
        log.error("network rules rejected", why=why)
        return why
