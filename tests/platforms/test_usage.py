"""Asking kubelets for usage: bounded in time, in nodes and in repetitions, and a node that fails delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from pincompute.api.names import SIMULATED_LABEL, WORKLOAD_LABEL
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.kubelet import KubeletAddress, KubeletUnavailable
from pincompute.kube.request import Request
from pincompute.planning.usage import UsagePod
from pincompute.platforms.kubernetes.usage import UsageLimits, UsageReader
from scripted_transport import ConnectedTransport, InstantClock, ScriptedTransport, client_over

LONG_LIMITS = UsageLimits(node_timeout_s=60, request_timeout_s=60)


class FakeCluster(ConnectedTransport):
    """API server with pods of project `me`, and a node for each name that is asked for."""

    def __init__(self, pods: Sequence[dict[str, Any]] = (), labels: dict[str, str] | None = None) -> None:
        self.pods = pods
        self.labels = labels or {}
        self.error: ApiError | None = None
        self.address_of_node = "ip of {}"
        self.requests: list[Request] = []

    async def send(self, request: Request) -> bytes:
        self.requests.append(request)
        if self.error:
            raise self.error
        if request.path.endswith("/token"):
            raise Forbidden(403, "Forbidden", "no")
        if request.path.endswith("/pods"):
            assert request.path == "/api/v1/namespaces/me/pods"
            return _list_of(self.pods)
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        if name == "gone":
            return _list_of([])
        status = {
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": self.address_of_node.format(name)},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        }
        return _list_of([{"metadata": {"name": name, "labels": self.labels}, "status": status}])


def _list_of(items: Sequence[object]) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": items})


class FakeKubelets:
    """Answers for every node at once, except where a test says otherwise."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.responders: dict[str, Callable[[], Awaitable[bytes]]] = {}
        self.at_a_time = self.most_at_a_time = 0

    async def read_stats(self, address: KubeletAddress) -> bytes:
        assert address.port == 10250
        node = address.host.removeprefix("ip of ")
        self.asked.append(node)
        self.at_a_time += 1
        self.most_at_a_time = max(self.most_at_a_time, self.at_a_time)
        try:
            return await self.responders.get(node, summary)()
        finally:
            self.at_a_time -= 1


async def summary() -> bytes:
    main = {"name": "main", "cpu": {"usageNanoCores": 10**7}, "memory": {"workingSetBytes": 1000}}
    pods = [{"podRef": {"namespace": "me", "uid": f"uid-{number}"}, "containers": [main]} for number in range(300)]
    return msgspec.json.encode({"pods": pods})


async def never() -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


def pod_of(number: int, node: str, workload: str = "web") -> dict[str, Any]:
    statuses = [{"name": "main", "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}}]
    metadata = {"name": f"{workload}-{number}", "namespace": "me", "uid": f"uid-{number}"}
    return {
        "metadata": {**metadata, "labels": {WORKLOAD_LABEL: workload}},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


def reader_of(
    cluster: FakeCluster, kubelets: FakeKubelets, limits: UsageLimits = LONG_LIMITS, clock: InstantClock | None = None
) -> UsageReader:
    script: Any = cluster
    transport: ScriptedTransport = script
    return UsageReader(client_over(transport, clock), kubelets.read_stats, limits)


def pods_on(*nodes: str) -> list[UsagePod]:
    return msgspec.convert([pod_of(number, node) for number, node in enumerate(nodes)], list[UsagePod])


async def test_sums_the_pods_of_each_workload() -> None:
    cluster = FakeCluster([pod_of(1, "n1"), pod_of(2, "n2"), pod_of(3, "n1", "db")])
    found = await reader_of(cluster, FakeKubelets()).usage_in_project("me")
    assert [(each.name, each.running, each.cpu.used, each.memory.used) for each in found] == [
        ("db", 1, 10, 1000),
        ("web", 2, 20, 2000),
    ]


async def test_silent_kubelet_is_unknown_and_delays_no_other() -> None:
    kubelets = FakeKubelets()
    kubelets.responders["n2"] = never
    limits = UsageLimits(node_timeout_s=60, request_timeout_s=0.01)
    reader = reader_of(FakeCluster([pod_of(1, "n1"), pod_of(2, "n2")]), kubelets, limits)
    (found,) = await reader.usage_in_project("me")
    assert (found.cpu.used, found.cpu.unknown) == (10, 1)
    assert found.note == "not answered within 0.01 s (n2)"


async def test_silent_kubelet_is_given_up() -> None:
    kubelets = FakeKubelets()
    kubelets.responders["n2"] = never
    reader = reader_of(FakeCluster(), kubelets, UsageLimits(node_timeout_s=0.01, request_timeout_s=60))
    stats = await reader.stats_of_nodes(pods_on("n2"))
    assert stats["n2"].problem == "its kubelet does not answer within 0.01 s"


async def test_nodes_are_asked_once_in_ten_seconds_also_those_that_fail() -> None:
    kubelets, clock = FakeKubelets(), InstantClock()

    async def fail() -> bytes:
        raise KubeletUnavailable("its kubelet does not answer")

    kubelets.responders["n2"] = fail
    reader = reader_of(FakeCluster(), kubelets, clock=clock)
    pods = pods_on("n1", "n2", "n1")
    # Concurrent requests share one question, and later ones its answer.
    first, second = await asyncio.gather(reader.stats_of_nodes(pods), reader.stats_of_nodes(pods))
    assert first == second == await reader.stats_of_nodes(pods)
    assert first["n2"].problem == "its kubelet does not answer"
    assert sorted(kubelets.asked) == ["n1", "n2"]
    await clock.sleep(10)
    await reader.stats_of_nodes(pods)
    assert sorted(kubelets.asked) == ["n1", "n1", "n2", "n2"]


async def test_number_of_nodes_is_bounded_at_a_time_and_for_each_request() -> None:
    kubelets = FakeKubelets()
    reader = reader_of(FakeCluster(), kubelets, LONG_LIMITS._replace(nodes_at_a_time=3, nodes_per_request=20))
    stats = await reader.stats_of_nodes(pods_on(*(f"n{number:02}" for number in range(25))))
    assert len(kubelets.asked) == 20
    assert kubelets.most_at_a_time <= 3
    assert stats["n24"].problem == "at most 20 nodes are asked for one request"
    assert len(stats["n00"].pods) == 300


async def test_request_that_is_cancelled_does_not_cancel_the_question_of_others() -> None:
    kubelets, begun, answer = FakeKubelets(), asyncio.Event(), asyncio.Event()

    async def answer_later() -> bytes:
        begun.set()
        await answer.wait()
        return await summary()

    kubelets.responders["n1"] = answer_later
    reader = reader_of(FakeCluster(), kubelets)
    first, second = (asyncio.create_task(reader.stats_of_nodes(pods_on("n1"))) for _ in range(2))
    await begun.wait()
    first.cancel()
    answer.set()
    assert (await second)["n1"].problem == ""
    assert kubelets.asked == ["n1"]


async def test_simulated_nodes_are_not_asked() -> None:
    kubelets = FakeKubelets()
    reader = reader_of(FakeCluster(labels={SIMULATED_LABEL: "true"}), kubelets)
    stats = await reader.stats_of_nodes(pods_on("n1"))
    assert (stats["n1"].problem, kubelets.asked) == ("simulated nodes measure nothing", [])


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (Forbidden(403, "Forbidden", "nodes is forbidden"), "the permission list of nodes is missing"),
        (ApiError(400, "BadRequest", "no"), "its address or our certificate cannot be read"),
    ],
)
async def test_problem_of_the_api_server_is_told(error: ApiError, problem: str) -> None:
    cluster = FakeCluster()
    cluster.error = error
    stats = await reader_of(cluster, FakeKubelets()).stats_of_nodes(pods_on("n1"))
    assert stats["n1"].problem == problem


async def test_deleted_node_and_invalid_summary_are_told() -> None:
    kubelets = FakeKubelets()

    async def send_garbage() -> bytes:
        return b"NaN"

    kubelets.responders["n1"] = send_garbage
    stats = await reader_of(FakeCluster(), kubelets).stats_of_nodes(pods_on("n1", "gone"))
    assert stats["n1"].problem == "its kubelet sends no valid summary"
    assert stats["gone"].problem == "the node does not exist any more"


async def test_pods_without_a_node_ask_nothing() -> None:
    cluster = FakeCluster()
    assert await reader_of(cluster, FakeKubelets()).stats_of_nodes(pods_on("")) == {}
    assert cluster.requests == []


@pytest.mark.parametrize(
    ("in_pod", "requested", "problem"),
    [
        (True, True, "the service account for kubelets, or the right to its tokens, is missing"),
        (False, False, "kubelets are asked with a client certificate only, and this login has none"),
    ],
)
async def test_only_a_pod_requests_tokens_of_the_account(*, in_pod: bool, requested: bool, problem: str) -> None:
    cluster = FakeCluster()
    cluster.address_of_node = "10.0.0.7"
    script: Any = cluster
    access = Access("https://10.0.0.1", token="secret", in_pod=in_pod)
    reader = UsageReader(Client(access, "test", transport=script, clock=InstantClock()), limits=LONG_LIMITS)
    stats = await reader.stats_of_nodes(pods_on("n1"))
    assert stats["n1"].problem == problem
    tokens = "/api/v1/namespaces/pincompute-system/serviceaccounts/pincompute-node-stats/token"
    assert (tokens in [each.path for each in cluster.requests]) == requested
