"""Reads the resource use of workloads from the kubelets of their nodes, which are asked at most once in some seconds.

The desk asks for all of its callers, so everything is bounded: a kubelet's time and response, those asked at a time,
and those asked for one request. A kubelet that does not answer leaves its own pods unknown, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from pincompute.api.names import NODE_STATS_ACCOUNT, SIMULATED_LABEL, SYSTEM_NAMESPACE, WORKLOAD_LABEL
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.usage import WorkloadUsage
from pincompute.base.aio import beside_loop
from pincompute.base.bounded_map import BoundedMap
from pincompute.base.problem import Refused
from pincompute.kube.account_token import AccountToken
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.kubelet import KubeletAddress, KubeletClient, KubeletUnavailable
from pincompute.kube.resource import NODES, PODS
from pincompute.planning.usage import NodeStats, UsagePod, UsageStatsInvalid, parse_stats, workload_usage

_MAX_CACHED_NODES = 5000
_LARGE_BYTES = 256 * 2**10
"""A larger summary is parsed beside the event loop."""


class UsageLimits(NamedTuple):
    node_timeout_s: float = 1.0
    request_timeout_s: float = 3.0
    max_age_s: float = 10.0
    """Kubelets measure every ten seconds. A failure is kept as long: a dead node is not asked by each request."""
    nodes_at_a_time: int = 16
    nodes_per_request: int = 200


DEFAULT_LIMITS = UsageLimits()


class _NodeAddress(LenientStruct, frozen=True):
    type: str
    address: str


class _KubeletEndpoint(LenientStruct, frozen=True):
    port: int = msgspec.field(name="Port", default=0)


class _DaemonEndpoints(LenientStruct, frozen=True):
    kubelet_endpoint: _KubeletEndpoint = _KubeletEndpoint()


class _NodeStatus(LenientStruct, frozen=True):
    addresses: tuple[_NodeAddress, ...] = ()
    daemon_endpoints: _DaemonEndpoints = _DaemonEndpoints()


class _Node(LenientStruct, frozen=True):
    metadata: Metadata
    status: _NodeStatus = _NodeStatus()

    @property
    def kubelet(self) -> KubeletAddress:
        internal = (each.address for each in self.status.addresses if each.type == "InternalIP")
        return KubeletAddress(next(internal, ""), self.status.daemon_endpoints.kubelet_endpoint.port)


class _Asked(NamedTuple):
    """A question to a node that is or was asked, with the time of its beginning."""

    at_s: float
    answer: asyncio.Task[NodeStats]


class UsageReader:
    def __init__(
        self,
        client: Client,
        read_stats: Callable[[KubeletAddress], Awaitable[bytes]] | None = None,
        limits: UsageLimits = DEFAULT_LIMITS,
        *,
        with_io: bool = False,
    ) -> None:
        self._client = client
        self._with_io = with_io
        self._read_stats = read_stats
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.nodes_at_a_time)
        self._asked: BoundedMap[str, _Asked] = BoundedMap(_MAX_CACHED_NODES)

    async def usage_in_project(self, project: str) -> list[WorkloadUsage]:
        """Use of all workloads of a project that have pods."""
        pods: list[UsagePod] = (await self._client.list(PODS, project, labels=WORKLOAD_LABEL, type=UsagePod)).items
        stats = await self.stats_of_nodes(pods)
        by_workload: dict[str, list[UsagePod]] = {}
        for pod in pods:
            by_workload.setdefault(pod.metadata.labels[WORKLOAD_LABEL], []).append(pod)
        return [workload_usage(name, by_workload[name], stats) for name in sorted(by_workload)]

    async def stats_of_nodes(self, pods: Sequence[UsagePod]) -> dict[str, NodeStats]:
        """Stats of the nodes of running pods, or why there are none. Returns within the time of a request."""
        nodes = sorted({each.spec.node_name for each in pods if each.is_running})
        chosen = nodes[: self._limits.nodes_per_request]
        left_out = NodeStats(problem=f"at most {self._limits.nodes_per_request} nodes are asked for one request")
        late = NodeStats(problem=f"not answered within {self._limits.request_timeout_s:g} s")
        return {
            **dict.fromkeys(nodes, left_out),
            **dict.fromkeys(chosen, late),
            **await self._answers(chosen),
        }

    async def _answers(self, nodes: Collection[str]) -> dict[str, NodeStats]:
        asked = {node: self._ask(node) for node in nodes}
        if asked:
            # Tasks are shared by requests, so one that is late goes on for the next request.
            await asyncio.wait(asked.values(), timeout=self._limits.request_timeout_s)
        return {node: task.result() for node, task in asked.items() if task.done() and not task.cancelled()}

    def _ask(self, node: str) -> asyncio.Task[NodeStats]:
        """The answer of a node that is not too old; concurrent requests share one question."""
        now_s = self._client.clock.monotonic()
        asked = self._asked.get(node)
        if asked is None or (asked.answer.done() and now_s - asked.at_s >= self._limits.max_age_s):
            asked = _Asked(now_s, asyncio.create_task(self._stats_or_problem(node)))
            self._asked.put(node, asked)
        return asked.answer

    async def _stats_or_problem(self, node: str) -> NodeStats:
        try:
            async with self._slots, asyncio.timeout(self._limits.node_timeout_s):
                return await self._read_node(node)
        except KubeletUnavailable as error:
            return NodeStats(problem=str(error))
        except UsageStatsInvalid:
            return NodeStats(problem="its kubelet sends no valid summary")
        except TimeoutError:
            return NodeStats(problem=f"its kubelet does not answer within {self._limits.node_timeout_s:g} s")
        except Forbidden:
            return NodeStats(problem="the permission list of nodes is missing")
        except Refused:
            return NodeStats(problem="its address or our certificate cannot be read")

    async def _read_node(self, name: str) -> NodeStats:
        # A list, as the desk may list nodes: one more permission would tell it nothing else.
        nodes: list[_Node] = (await self._client.list(NODES, fields=f"metadata.name={name}", type=_Node)).items
        if not nodes:
            raise KubeletUnavailable("the node does not exist any more")
        (node,) = nodes
        if node.metadata.labels.get(SIMULATED_LABEL) == "true":
            raise KubeletUnavailable("simulated nodes measure nothing")
        if self._read_stats is None:
            # Created late, as a client without a connection has no access yet.
            self._read_stats = partial(_kubelet_client(self._client).read_stats, with_io=self._with_io)
        body = await self._read_stats(node.kubelet)
        return await beside_loop(partial(parse_stats, body), large=len(body) > _LARGE_BYTES)


def _kubelet_client(client: Client) -> KubeletClient:
    """A desk in a pod has no certificate, and asks with tokens of an account. People may not request such tokens."""
    if not client.access.in_pod:
        return KubeletClient(client.access)
    return KubeletClient(client.access, AccountToken(client, SYSTEM_NAMESPACE, NODE_STATS_ACCOUNT).read)
