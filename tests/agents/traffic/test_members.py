"""Which pods are members, and what is read as one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pincompute.agents.traffic.members import MemberPod, address_lines, member_name, member_of, parse_member
from pincompute.api.serverset import ServersetKey

LABELS = {"pinterest.com/workload": "db", "pinterest.com/serverset": "true"}


def member_pod(**changes: Any) -> MemberPod:
    metadata = {"name": "db-1", "namespace": "ads", "uid": "u1", "labels": LABELS, **changes.pop("metadata", {})}
    main = {"name": "db", "ports": [{"name": "main", "containerPort": 5432}, {"name": "web", "containerPort": 80}]}
    spec = {"nodeName": "n1", "containers": [{"name": "proxy", "ports": [{"containerPort": 1}]}, main]}
    status = {"phase": "Running", "podIP": "10.1.2.3", "conditions": [{"type": "Ready", "status": "True"}]}
    pod = {"metadata": metadata, "spec": {**spec, **changes.pop("spec", {})}, "status": {**status, **changes}}
    return msgspec.convert(pod, MemberPod)


def test_member_has_the_json_of_a_finagle_service_instance() -> None:
    member = member_of(member_pod(metadata={"labels": {**LABELS, "apps.kubernetes.io/pod-index": "1"}}))
    assert member is not None
    assert member.serverset == ServersetKey("ads", "db")
    assert json.loads(member.data) == {
        "serviceEndpoint": {"host": "10.1.2.3", "port": 5432},
        "additionalEndpoints": {
            "main": {"host": "10.1.2.3", "port": 5432},
            "web": {"host": "10.1.2.3", "port": 80},
        },
        "status": "ALIVE",
        "shard": 1,
        "metadata": {"pod": "db-1", "node": "n1"},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"conditions": [{"type": "Ready", "status": "False"}]},
        {"conditions": []},
        {"phase": "Succeeded"},
        {"podIP": ""},
        {"metadata": {"deletionTimestamp": "2026-01-31T12:00:00Z"}},
        {"metadata": {"labels": {"pinterest.com/workload": "db"}}},
        {"metadata": {"labels": {"pinterest.com/serverset": "true"}}},
        {"spec": {"containers": []}},
        {"spec": {"containers": [{"name": "db"}]}},
    ],
    ids=lambda each: next(iter(each)),
)
def test_pod_is_no_member_unless_ready_with_address(changes: dict[str, Any]) -> None:
    assert member_of(member_pod(**changes)) is None


def test_name_depends_on_the_pod_alone_and_has_only_digits() -> None:
    names = {member_name(f"uid-{each}") for each in range(5000)}
    assert len(names) == 5000
    assert all(each.startswith("member_") and each[7:].isdigit() and int(each[7:]) < 1 << 63 for each in names)
    assert member_name("u1") == member_name("u1")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\xff\xfe",
        b"null",
        b"[]",
        b'{"serviceEndpoint":{"host":"10.0.0.1","port":80},"status":"DEAD"}',
        b'{"serviceEndpoint":{"host":"10.0.0.1","port":0}}',
        b'{"serviceEndpoint":{"host":"10.0.0.1","port":65536}}',
        b'{"serviceEndpoint":{"host":"10.0.0.1\\n6.6.6.6:1","port":80}}',
        b'{"serviceEndpoint":{"host":"../../etc","port":80}}',
        b'{"serviceEndpoint":{"host":"10.0.0.1","port":"80"}}',
        b'{"serviceEndpoint":{"host":"10.0.0.1","port":80},"metadata":{"x":"' + b"a" * 5000 + b'"}}',
        b"[" * 4000,
    ],
)
def test_garbage_is_no_member(data: bytes) -> None:
    assert parse_member(data) is None


def test_addresses_are_in_the_order_of_shards_each_once() -> None:
    texts = [("10.0.0.2", 1), ("10.0.0.1", 2), ("10.0.0.2", 1), ("fd00::1", 0)]
    data = [b'{"serviceEndpoint":{"host":"%s","port":80},"shard":%d}' % (host.encode(), n) for host, n in texts]
    assert address_lines(filter(None, map(parse_member, data))) == "[fd00::1]:80\n10.0.0.2:80\n10.0.0.1:80\n"
