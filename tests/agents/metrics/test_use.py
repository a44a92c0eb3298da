"""Metrics of used resources: figures of the kubelet's summary with the labels of workloads."""

from __future__ import annotations

from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from pincompute.agents.metrics.fair_share import MAX_OF_PROJECT
from pincompute.agents.metrics.pods import ScrapedPod
from pincompute.agents.metrics.use import measured_pods, use_metrics
from pincompute.base.metrics_page import exposition
from pincompute.objects.content import Object
from pincompute.planning.usage import NodeStats, parse_stats
from scraped_pods import LABELS, scraped_pod

CONTAINERS = {"containers": [{"name": "web", "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}}]}
RUNNING = {
    "containerStatuses": [
        {"name": "web", "restartCount": 2, "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}},
    ]
}
SUMMARY: Object = {
    "pods": [
        {
            "podRef": {"name": "web-1", "namespace": "ads", "uid": "uid-web-1"},
            "containers": [
                {"name": "web", "cpu": {"usageNanoCores": 1}, "memory": {"workingSetBytes": 48 * 2**20}},
                {"name": "logs", "cpu": {"usageNanoCores": 1}, "memory": {"workingSetBytes": 2**20}},
            ],
            "cpu": {"usageCoreNanoSeconds": 12_500_000_000},
            "network": {"name": "eth0", "rxBytes": 1000, "txBytes": 2000},
            "ephemeral-storage": {"usedBytes": 4096},
        }
    ]
}


def measured(summary: Any, *pods: ScrapedPod) -> dict[str, float]:
    """Values by metric, of pods on one node."""
    stats = {"node-1": parse_stats(msgspec.json.encode(summary))}
    text = exposition(lambda: use_metrics(measured_pods(pods), stats)).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert all(each.labels == LABELS for each in samples if each.labels)
    return {each.name.removeprefix("pincompute_"): each.value for each in samples}


def test_use_of_a_replica_has_the_labels_of_its_workload() -> None:
    assert measured(SUMMARY, scraped_pod(spec=CONTAINERS, **RUNNING)) == {
        "workload_cpu_seconds_total": 12.5,
        "workload_received_bytes_total": 1000,
        "workload_sent_bytes_total": 2000,
        "workload_restarts_total": 2,
        "workload_memory_bytes": 48 * 2**20,
        "workload_memory_limit_bytes": 64 * 2**20,
        "workload_cpu_requested_cores": 0.25,
        "workload_disk_bytes": 4096,
        "unmeasured_nodes": 0,
    }


def test_unknown_figures_are_left_out_and_no_zeros() -> None:
    assert measured({"pods": []}, scraped_pod(spec=CONTAINERS, **RUNNING)) == {
        "workload_restarts_total": 2,
        "workload_memory_limit_bytes": 64 * 2**20,
        "workload_cpu_requested_cores": 0.25,
        "unmeasured_nodes": 0,
    }


def test_garbage_of_a_kubelet_is_unknown() -> None:
    (pod,) = SUMMARY["pods"]
    garbage = {
        "cpu": {"usageCoreNanoSeconds": -1},
        "network": {"rxBytes": 2**70, "txBytes": "1"},
        "ephemeral-storage": 1,
    }
    figures = measured({"pods": [{**pod, **garbage, "ephemeral-storage": {"usedBytes": True}}]}, scraped_pod(**RUNNING))
    assert not figures.keys() & {f"workload_{each}_total" for each in ("cpu_seconds", "received_bytes", "sent_bytes")}
    assert "workload_disk_bytes" not in figures


def test_node_is_believed_about_its_own_pods_only() -> None:
    elsewhere = {"nodeName": "node-2", **CONTAINERS}
    assert "workload_cpu_seconds_total" not in measured(SUMMARY, scraped_pod(spec=elsewhere, **RUNNING))


def test_node_that_reports_nothing_is_counted() -> None:
    stats = {"node-1": NodeStats(problem="its kubelet does not answer")}
    assert b"pincompute_unmeasured_nodes 1.0" in exposition(lambda: use_metrics([scraped_pod()], stats))


def test_number_of_replicas_is_bounded() -> None:
    pods = [scraped_pod(f"web-{at}", project="shop") for at in range(2 * MAX_OF_PROJECT)]
    assert len(measured_pods([*pods, scraped_pod()])) == MAX_OF_PROJECT + 1
