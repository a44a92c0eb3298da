"""Metrics of a workload's program: the annotation and the container port by which Prometheus finds them."""

from __future__ import annotations

from pincompute.api.metrics_endpoint import parse_metrics
from pincompute.api.names import METRICS_ANNOTATION, METRICS_PORT_NAME
from pincompute.api.workload import Workload
from pincompute.objects.content import Object


def metrics_annotations(owner: Workload) -> dict[str, str]:
    endpoint = parse_metrics(owner.spec.metrics)
    return {METRICS_ANNOTATION: str(endpoint)} if endpoint else {}


def metrics_ports(owner: Workload, containers: list[Object]) -> list[Object]:
    """The port of the metrics that the main container has to declare; none if a container declares it already.

    Policies admit scrapers by its name, and parts of the runtime that listen on the same port are refused.
    """
    endpoint = parse_metrics(owner.spec.metrics)
    if endpoint is None or any(_declares(each, endpoint.port) for each in containers):
        return []
    return [{"name": METRICS_PORT_NAME, "containerPort": endpoint.port, "protocol": "TCP"}]


def _declares(container: Object, port: int) -> bool:
    return any(
        (each.get("containerPort"), each.get("protocol") or "TCP") == (port, "TCP")
        for each in container.get("ports", ())
    )
