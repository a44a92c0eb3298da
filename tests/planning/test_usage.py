"""Resource use from summaries of kubelets, also of kubelets that are wrong, incomplete or hostile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.usage import ResourceUsage
from pincompute.planning.usage import (
    NOT_MEASURED,
    NodeStats,
    PodUse,
    UsagePod,
    UsageStatsInvalid,
    parse_stats,
    use_of_pod,
    workload_usage,
)

MIB = 2**20


def pod_of(name: str, node: str = "n1", *, project: str = "me", phase: str = "Running", restarts: int = 0) -> UsagePod:
    resources = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}
    statuses = [
        {"name": name, "restartCount": restarts, "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}}
        for name in ("main", "logs")
    ]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": project, "uid": f"uid-{name}"},
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": resources}]},
            "status": {"phase": phase, "containerStatuses": statuses[:1]},
        },
        UsagePod,
    )


def kubelet_summary(*pods: object) -> NodeStats:
    return parse_stats(msgspec.json.encode({"node": {"nodeName": "n1"}, "pods": pods}))


def measured(name: str, cpu: Any = 120 * 10**6, memory: Any = 200 * MIB, *, project: str = "me") -> dict[str, Any]:
    main = {"name": "main", "cpu": {"usageNanoCores": cpu}, "memory": {"workingSetBytes": memory}}
    sidecar = {"name": "logs", "cpu": {"usageNanoCores": 10**9}, "memory": {"workingSetBytes": 900 * MIB}}
    return {"podRef": {"name": name, "namespace": project, "uid": f"uid-{name}"}, "containers": [main, sidecar]}


def test_counts_own_containers_of_a_pod_only() -> None:
    assert use_of_pod(pod_of("web-1"), {"n1": kubelet_summary(measured("web-1"))}) == PodUse(120, 200 * MIB)


def test_sums_replicas_on_several_nodes() -> None:
    stats = {"n1": kubelet_summary(measured("web-1")), "n2": kubelet_summary(measured("web-2"))}
    found = workload_usage("web", [pod_of("web-1", restarts=2), pod_of("web-2", "n2", restarts=1)], stats)
    assert found.cpu == ResourceUsage(used=240, allotted=1000, requested=1000)
    assert found.memory == ResourceUsage(used=400 * MIB, allotted=1024 * MIB, requested=1024 * MIB, limit=1024 * MIB)
    assert (found.running, found.restarts, found.note) == (2, 3, "")


def test_node_that_does_not_answer_leaves_its_replicas_unknown_and_not_zero() -> None:
    stats = {"n1": kubelet_summary(measured("web-1")), "n2": NodeStats(problem="its kubelet does not answer")}
    found = workload_usage("web", [pod_of("web-1"), pod_of("web-2", "n2")], stats)
    # The allotment is that of the measured replica, too.
    assert found.cpu == ResourceUsage(used=120, allotted=500, requested=500, unknown=1)
    assert found.note == "its kubelet does not answer (n2)"
    assert workload_usage("web", [pod_of("web-2", "n2")], stats).cpu == ResourceUsage(
        allotted=500, requested=500, unknown=1
    )


def test_one_container_without_a_limit_makes_the_workload_unlimited() -> None:
    limited = pod_of("web-1")
    resources = {"requests": {"memory": "128Mi"}}
    unlimited = msgspec.structs.replace(
        pod_of("web-2"),
        spec=msgspec.convert(
            {"nodeName": "n1", "containers": [{"name": "main", "resources": resources}]}, type(limited.spec)
        ),
    )
    stats = {"n1": kubelet_summary(measured("web-1"), measured("web-2"))}
    assert workload_usage("web", [limited], stats).memory.limit == 512 * MIB
    both = workload_usage("web", [limited, unlimited], stats).memory
    assert (both.requested, both.limit) == (640 * MIB, None)


def test_note_has_the_most_frequent_problem_and_two_nodes() -> None:
    stats = {f"n{number}": NodeStats(problem="dead") for number in range(2, 6)}
    pods = [pod_of(f"web-{number}", f"n{number}") for number in range(1, 6)]
    assert workload_usage("web", pods, stats).note == "dead (n2, n3 and 2 more)"


def test_pod_that_is_not_in_the_summary_is_not_measured_yet() -> None:
    found = workload_usage("web", [pod_of("web-1")], {"n1": kubelet_summary()})
    assert (found.cpu.used, found.note) == (None, f"{NOT_MEASURED} (n1)")


def test_pods_that_do_not_run_use_nothing_and_count_restarts() -> None:
    pods = [pod_of("web-1", phase="Pending", restarts=1), pod_of("web-2", phase="Failed", restarts=4)]
    found = workload_usage("web", pods, {"n1": kubelet_summary(measured("web-1"))})
    assert (found.running, found.cpu, found.restarts, found.note) == (0, ResourceUsage(), 5, "")


def test_container_that_waits_for_its_restart_uses_nothing() -> None:
    waiting = [{"name": "main", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    pod = msgspec.structs.replace(
        pod_of("web-1"),
        status=msgspec.convert({"phase": "Running", "containerStatuses": waiting}, type(pod_of("a").status)),
    )
    stats = {"n1": kubelet_summary({**measured("web-1"), "containers": None})}
    assert use_of_pod(pod, stats) == PodUse(0, 0)


@pytest.mark.parametrize("figure", [-1, -(2**62), 10**15 + 1, 2**64, 1.5, "12", True, None, [], {"a": 1}])
def test_invalid_figure_is_unknown_and_spoils_no_other(figure: object) -> None:
    stats = {"n1": kubelet_summary(measured("web-1", cpu=figure), measured("web-2"))}
    assert use_of_pod(pod_of("web-1"), stats) == PodUse(None, 200 * MIB)
    found = workload_usage("web", [pod_of("web-1"), pod_of("web-2")], stats)
    assert (found.cpu.used, found.cpu.unknown, found.memory.used) == (120, 1, 400 * MIB)


def test_huge_memory_is_unknown() -> None:
    assert use_of_pod(pod_of("web-1"), {"n1": kubelet_summary(measured("web-1", memory=2**50 + 1))}) == PodUse(
        120, None
    )


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"NaN", b'{"pods": NaN}', b'{"pods": [{"containers": [{"cpu": {"usageNanoCores": NaN}}]}]}',
        b"\xff", b'{"pods": {}}', b'{"pods": [{"podRef": {"uid": 7}}]}', b"[" * 100_000, b'{"pods": ' + b"[" * 100_000,
    ],
)  # fmt: skip
def test_rejects_response_that_is_no_summary(body: bytes) -> None:
    with pytest.raises(UsageStatsInvalid):
        parse_stats(body)


def test_node_is_not_believed_about_pods_of_other_nodes() -> None:
    stats = {"n1": kubelet_summary(measured("web-1")), "rogue": kubelet_summary(measured("web-1", cpu=10**12))}
    assert use_of_pod(pod_of("web-1"), stats).millicores == 120
    assert use_of_pod(pod_of("web-1", "n3"), stats) == PodUse()


def test_figures_of_other_projects_are_not_shown() -> None:
    """A summary has all pods of the node: neither their names nor their figures get into the usage of another one."""
    stats = {"n1": kubelet_summary(measured("web-1", project="ads"), measured("secret-1", project="ads"))}
    found = workload_usage("web", [pod_of("web-1")], stats)
    assert (found.cpu.used, found.memory.used) == (None, None)
    assert "secret" not in str(found)
