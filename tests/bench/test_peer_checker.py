"""The neutral checker of the comparison with peers: it finds what is missing, different, or too many."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from bench.peers.checker import SERVICE, Service, clusters_differ, differences, expected_objects

OWNER = Service("web", "bench", "web:2", 2)
Cluster = dict[str, list[dict[str, Any]]]


def made_cluster() -> Cluster:
    """Exactly what is expected, with the metadata that the API server and a contender add."""
    cluster: Cluster = {}
    for kind, expected in expected_objects(OWNER, generation=3):
        found = deepcopy(expected)
        found["metadata"] |= {"labels": {"pinterest.com/workload": "web"}, "uid": f"uid-{kind}", "generation": 3}
        if kind != SERVICE:
            found["metadata"]["ownerReferences"] = [{"uid": f"uid-{SERVICE}", "controller": True}]
        cluster.setdefault(kind, []).append(found)
    return cluster


def test_accepts_what_is_expected():
    assert differences([OWNER], made_cluster()) == []


def test_expects_a_record_for_each_revision():
    names = [each["metadata"]["name"] for each in made_cluster()["ConfigMap"]]
    assert names == ["web-1", "web-2"]


def test_variable_alone_keeps_its_type():
    (service,) = made_cluster()[SERVICE]
    record = made_cluster()["ConfigMap"][1]
    assert service["status"]["observedGeneration"] == 3
    assert record["metadata"]["annotations"]["pinterest.com/revision"] == "2"


def test_reports_missing_object():
    cluster = made_cluster()
    cluster["Ingress"].clear()
    assert differences([OWNER], cluster) == ["Ingress/web: missing"]


def test_reports_object_that_is_not_expected():
    cluster = made_cluster()
    cluster["Service"].append({"metadata": {"name": "more"}})
    assert differences([OWNER], cluster) == ["Service/more: not expected"]


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", "spec.replicas", 1),
        ("Deployment", "spec.template.spec.containers[0].image", "web:1"),
        ("Ingress", "spec.rules[0].host", "other.localhost"),
        (SERVICE, "status.observedGeneration", 2),
        (SERVICE, "status.conditions[1].status", "False"),
    ],
)
def test_reports_path_of_different_value(kind: str, path: str, value: object):
    cluster = made_cluster()
    target: Any = cluster[kind][0]
    *parents, last = path.replace("[", ".").replace("]", "").split(".")
    for step in parents:
        target = target[int(step) if step.isdigit() else step]
    target[last] = value
    assert differences([OWNER], cluster) == [f"{kind}/web: {path} differs"]


def test_reports_longer_list():
    cluster = made_cluster()
    ports: Any = cluster["Service"][0]["spec"]["ports"]
    ports.append({"port": 81})
    assert differences([OWNER], cluster) == ["Service/web: spec.ports differs"]


def test_reports_object_of_another_owner():
    cluster = made_cluster()
    cluster["Service"][0]["metadata"]["ownerReferences"][0]["uid"] = "other"
    assert differences([OWNER], cluster) == ["Service/web: not controlled by the service"]


def test_reports_object_without_label():
    cluster = made_cluster()
    del cluster["Service"][0]["metadata"]["labels"]
    assert differences([OWNER], cluster) == ["Service/web: not labelled"]


def test_clusters_are_equal_without_identity_and_hashes():
    first, second = made_cluster(), made_cluster()
    second["Service"][0]["metadata"] |= {"uid": "other", "resourceVersion": "9", "annotations": {"hash": "1"}}
    second["Service"][0]["spec"]["clusterIP"] = "127.10.0.9"
    second["Deployment"][0]["spec"]["template"]["metadata"]["labels"]["pinterest.com/template"] = "0"
    assert clusters_differ(first, second) == []


def test_clusters_differ_by_a_field_that_is_not_expected():
    first, second = made_cluster(), made_cluster()
    second["Deployment"][0]["spec"]["minReadySeconds"] = 5
    assert clusters_differ(first, second) == ["Deployment/web: more fields"]
    assert clusters_differ(second, first) == ["Deployment/web: spec.minReadySeconds"]
