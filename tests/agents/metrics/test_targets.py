"""Scrape targets of pods: what becomes one, with which labels, and what a tenant cannot reach by it."""

from __future__ import annotations

from ipaddress import ip_network

import msgspec
import pytest

from pincompute.agents.metrics.fair_share import MAX_OF_PROJECT, MAX_TOTAL
from pincompute.agents.metrics.pods import ScrapedPod
from pincompute.agents.metrics.targets import scrape_targets
from pincompute.api.names import (
    IN_PLACE_HASH_LABEL,
    SIMULATED_LABEL,
    STATSD_PORT_NAME,
)
from pincompute.objects.content import Object
from scraped_pods import LABELS, scraped_pod

POD_RANGE = ip_network("10.202.3.0/24")


def targets_of(*pods: ScrapedPod) -> list[Object]:
    return [each.to_json() for each in scrape_targets(pods, POD_RANGE).chosen]


def test_running_pod_is_a_target_with_the_labels_of_its_workload() -> None:
    assert targets_of(scraped_pod(annotation="9102/internal/metrics")) == [
        {
            "targets": ["10.202.3.7:9102"],
            "labels": {"__metrics_path__": "/internal/metrics", **LABELS, "source": "application"},
        }
    ]


def test_revision_is_the_same_after_a_roll_of_the_runtime() -> None:
    (target,) = targets_of(scraped_pod(labels={IN_PLACE_HASH_LABEL: "without-sidecars"}))
    assert target["labels"]["revision"] == "without-sidecars"


def test_statsd_part_is_a_target_of_its_own() -> None:
    sidecar = {
        "name": "metrics",
        "restartPolicy": "Always",
        "ports": [{"name": STATSD_PORT_NAME, "containerPort": 9125}],
    }
    statsd = {
        "targets": ["10.202.3.7:9125"],
        "labels": {"__metrics_path__": "/metrics", **LABELS, "source": "statsd"},
    }
    assert targets_of(scraped_pod(annotation="", spec={"initContainers": [sidecar]})) == [statsd]
    both = targets_of(scraped_pod(spec={"initContainers": [sidecar]}))
    assert [each["labels"]["source"] for each in both] == ["application", "statsd"]


@pytest.mark.parametrize(
    "pod",
    [
        scraped_pod(annotation=""),
        scraped_pod(phase="Pending"),
        scraped_pod(phase="Succeeded"),
        scraped_pod(podIP=""),
        scraped_pod(spec={"nodeName": ""}),
        scraped_pod(spec={"nodeSelector": {SIMULATED_LABEL: "true"}}),
        scraped_pod(spec={"containers": [{"name": "web", "ports": [{"containerPort": 9102, "protocol": "UDP"}]}]}),
    ],
)
def test_pod_without_reachable_metrics_is_no_target(pod: ScrapedPod) -> None:
    assert targets_of(pod) == []


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.201.3.1", "169.254.169.254", "::1", "metadata.internal", "10.202.3.7:80"]
)
def test_address_outside_the_range_of_pods_is_no_target(address: str) -> None:
    assert targets_of(scraped_pod(podIP=address)) == []


def test_pod_in_the_network_of_its_node_is_no_target() -> None:
    assert targets_of(scraped_pod(spec={"hostNetwork": True})) == []


@pytest.mark.parametrize(
    "annotation",
    [
        "10.0.0.1:9102/metrics", "evil.example.com/9102", "9102@evil.example.com/", "9102/../../api", "9102/a?b=c",
        "9102/#x",
        "9102/%2e%2e", "9102//evil.example.com/x", "9102/a b", "9102\n9103", "0/metrics", "099/metrics", "-1/metrics",
        "99999/metrics", "9102/" + "a" * 300, "{}", '9102/","__address__":"evil', "٩١٠٢/metrics",
    ],
)  # fmt: skip
def test_forged_annotation_leads_nowhere(annotation: str) -> None:
    for target in targets_of(scraped_pod(annotation=annotation)):
        # A climbing path is of the pod's own server, and no other.
        assert target["targets"] == ["10.202.3.7:9102"]
        assert annotation == "9102/../../api"


def test_port_that_the_pod_does_not_declare_is_no_target() -> None:
    assert targets_of(scraped_pod(annotation="10250/metrics")) == []


def test_labels_are_of_names_that_tenants_do_not_set() -> None:
    forged = {"project": "shop", "job": "pincompute", "__address__": "evil.example.com", "replica": "x"}
    (target,) = targets_of(scraped_pod(labels=forged))
    assert target["labels"] == {"__metrics_path__": "/metrics", **LABELS, "source": "application"}


def test_project_with_many_replicas_leaves_room_for_others() -> None:
    many = [scraped_pod(f"web-{at:05}", project="shop") for at in range(3 * MAX_OF_PROJECT)]
    share = scrape_targets([*many, scraped_pod()], POD_RANGE)
    assert [each.labels["project"] for each in share.chosen].count("shop") == MAX_OF_PROJECT
    assert [each.labels["project"] for each in share.chosen].count("ads") == 1
    assert share.left_out == 2 * MAX_OF_PROJECT


def test_number_of_all_targets_is_bounded() -> None:
    projects = 1 + MAX_TOTAL // MAX_OF_PROJECT
    pods = [
        scraped_pod(f"web-{at}", project=f"p-{project}") for project in range(projects) for at in range(MAX_OF_PROJECT)
    ]
    share = scrape_targets(pods, POD_RANGE)
    assert (len(share.chosen), share.left_out) == (MAX_TOTAL, len(pods) - MAX_TOTAL)


def test_older_replica_stays_when_a_newer_one_comes() -> None:
    older = [scraped_pod(f"old-{at}") for at in range(MAX_OF_PROJECT)]
    newer = msgspec.structs.replace(
        scraped_pod("a-newer"),
        metadata=msgspec.structs.replace(scraped_pod("a-newer").metadata, creation_timestamp="2026-01-31T13:00:00Z"),
    )
    assert "a-newer" not in {each.labels["replica"] for each in scrape_targets([newer, *older], POD_RANGE).chosen}
