"""What a program may do on its node: nothing, but for what its template names."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.wire import Metadata
from pincompute.planning.pods.container import SAFE, SAFE_CONTAINER
from pincompute.planning.pods.pod import Shape, make
from pincompute.planning.snapshot import Snapshot
from worlds import LAPTOP, NOW


def made(pod: dict[str, Any], container: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    containers = [{"name": "web", "image": "web:1", "securityContext": container}]
    spec = ServiceSpec(port=80, template={"spec": {"securityContext": pod, "containers": containers}})
    owner = PinterestService(metadata=Metadata(name="web", namespace="me"), spec=spec)
    template = make(Snapshot(owner, (), (), LAPTOP, NOW), Shape()).template["spec"]
    return template["securityContext"], template["containers"][0]["securityContext"]


@pytest.mark.parametrize(
    ("pod", "container", "of_pod", "of_container"),
    [
        ({}, {}, SAFE, SAFE_CONTAINER),
        ({"fsGroup": 7}, {}, {**SAFE, "fsGroup": 7}, SAFE_CONTAINER),
        ({"runAsUser": 0}, {}, {**SAFE, "runAsUser": 0, "runAsNonRoot": False}, SAFE_CONTAINER),
        ({}, {"runAsUser": 0}, SAFE, {**SAFE_CONTAINER, "runAsUser": 0, "runAsNonRoot": False}),
        ({}, {"privileged": True}, SAFE, {"privileged": True, "capabilities": {"drop": ["ALL"]}}),
        ({}, {"capabilities": {"add": ["CHOWN"]}}, SAFE, {**SAFE_CONTAINER, "capabilities": {"add": ["CHOWN"]}}),
    ],
)
def test_rights(
    pod: dict[str, Any], container: dict[str, Any], of_pod: dict[str, Any], of_container: dict[str, Any]
) -> None:
    assert made(pod, container) == (of_pod, of_container)
