"""Pods as the metrics agent sees them."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.agents.metrics.pods import ScrapedPod
from pincompute.api.names import (
    KIND_LABEL,
    METRICS_ANNOTATION,
    METRICS_PORT_NAME,
    TEMPLATE_HASH_LABEL,
    WORKLOAD_LABEL,
)
from pincompute.objects.content import Object

LABELS = {
    "project": "ads",
    "workload": "web",
    "kind": "PinterestService",
    "revision": "3f9a1c27b0de",
    "replica": "web-1",
}


def scraped_pod(
    name: str = "web-1",
    *,
    project: str = "ads",
    annotation: str = "9102/metrics",
    labels: Object | None = None,
    spec: Object | None = None,
    **status: Any,
) -> ScrapedPod:
    """A running replica of ads/web that declares its metrics."""
    content = {
        "metadata": {
            "name": name,
            "namespace": project,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "labels": {
                WORKLOAD_LABEL: "web",
                KIND_LABEL: "PinterestService",
                TEMPLATE_HASH_LABEL: "3f9a1c27b0de",
                **(labels or {}),
            },
            "annotations": {METRICS_ANNOTATION: annotation} if annotation else {},
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "web", "ports": [{"name": METRICS_PORT_NAME, "containerPort": 9102}]}],
            **(spec or {}),
        },
        "status": {"phase": "Running", "podIP": "10.202.3.7", **status},
    }
    return msgspec.convert(content, ScrapedPod)
