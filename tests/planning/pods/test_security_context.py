"""Security context of generated pods: restrictive, except for what the template names."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.structs import Metadata
from pincompute.planning.pods.container import CONTAINER_SECURITY_DEFAULTS, POD_SECURITY_DEFAULTS
from pincompute.planning.pods.pod import PodOverlay, build_template
from pincompute.planning.snapshot import Snapshot
from snapshot_strategies import LAPTOP, NOW


def security_contexts(pod: dict[str, Any], container: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    containers = [{"name": "web", "image": "web:1", "securityContext": container}]
    spec = ServiceSpec(port=80, template={"spec": {"securityContext": pod, "containers": containers}})
    owner = PinterestService(metadata=Metadata(name="web", namespace="me"), spec=spec)
    template = build_template(Snapshot(owner, (), (), LAPTOP, NOW), PodOverlay()).template["spec"]
    return template["securityContext"], template["containers"][0]["securityContext"]


@pytest.mark.parametrize(
    ("pod", "container", "of_pod", "of_container"),
    [
        ({}, {}, POD_SECURITY_DEFAULTS, CONTAINER_SECURITY_DEFAULTS),
        ({"fsGroup": 7}, {}, {**POD_SECURITY_DEFAULTS, "fsGroup": 7}, CONTAINER_SECURITY_DEFAULTS),
        (
            {"runAsUser": 0},
            {},
            {**POD_SECURITY_DEFAULTS, "runAsUser": 0, "runAsNonRoot": False},
            CONTAINER_SECURITY_DEFAULTS,
        ),
        (
            {},
            {"runAsUser": 0},
            POD_SECURITY_DEFAULTS,
            {**CONTAINER_SECURITY_DEFAULTS, "runAsUser": 0, "runAsNonRoot": False},
        ),
        ({}, {"privileged": True}, POD_SECURITY_DEFAULTS, {"privileged": True, "capabilities": {"drop": ["ALL"]}}),
        (
            {},
            {"capabilities": {"add": ["CHOWN"]}},
            POD_SECURITY_DEFAULTS,
            {**CONTAINER_SECURITY_DEFAULTS, "capabilities": {"add": ["CHOWN"]}},
        ),
    ],
)
def test_template_overrides_restrictive_defaults(
    pod: dict[str, Any], container: dict[str, Any], of_pod: dict[str, Any], of_container: dict[str, Any]
) -> None:
    assert security_contexts(pod, container) == (of_pod, of_container)
