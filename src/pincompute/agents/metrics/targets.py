"""Finds the scrape targets of workloads, from their pods alone. Pure.

A tenant writes the program and much of the pod, so a target takes nothing from it but a port that the pod declares and
a path of harmless characters. The address is the pod's own, within the range of the pods; the labels are names that
only the platform's controllers can set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import NamedTuple

from pincompute.agents.metrics.fair_share import FairShare, fair_share
from pincompute.agents.metrics.pods import ScrapedPod, oldest_first
from pincompute.api.metrics_endpoint import DEFAULT_PATH, MetricsEndpoint, parse_metrics
from pincompute.api.names import METRICS_ANNOTATION, STATSD_PORT_NAME
from pincompute.api.structs import METRICS_PATTERN, Metadata
from pincompute.objects.content import Object

_MAX_ANNOTATION_CHARS = 256


class Target(NamedTuple):
    """One endpoint of one pod."""

    address: str
    endpoint: MetricsEndpoint
    labels: dict[str, str]

    def to_json(self) -> Object:
        """A target group of Prometheus' HTTP service discovery."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        labels = {"__metrics_path__": self.endpoint.path, **self.labels}
        return {"targets": [f"{host}:{self.endpoint.port}"], "labels": labels}


def scrape_targets(pods: Iterable[ScrapedPod], pod_range: IPv4Network | IPv6Network) -> FairShare[Target]:
    """Targets of all running pods, the oldest of each project first."""
    targets = (target for pod in oldest_first(pods) for target in _targets_of(pod, pod_range))
    return fair_share(targets, lambda target: target.labels["project"])


def _targets_of(pod: ScrapedPod, pod_range: IPv4Network | IPv6Network) -> Iterator[Target]:
    address = pod.status.pod_ip
    if not _is_reachable(pod) or not _is_within(address, pod_range):
        return
    declared = {port.container_port for port in pod.ports}
    endpoint = _annotated_endpoint(pod.metadata)
    if endpoint and endpoint.port in declared:
        yield Target(address, endpoint, {**pod.labels, "source": "application"})
    for port in pod.ports:
        # A tenant may use the name, too, and would then be scraped there: at its own address, under its own labels.
        if port.name == STATSD_PORT_NAME and (endpoint is None or port.container_port != endpoint.port):
            yield Target(
                address, MetricsEndpoint(port.container_port, DEFAULT_PATH), {**pod.labels, "source": "statsd"}
            )
            return


def _is_reachable(pod: ScrapedPod) -> bool:
    """A pod in the network of its node would make a target of every port of the node, the kubelet's included."""
    ended = bool(pod.metadata.deletion_timestamp)
    return pod.is_running and not ended and not pod.spec.host_network and not pod.is_simulated


def _is_within(address: str, pod_range: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address) in pod_range
    except ValueError:
        return False


def _annotated_endpoint(metadata: Metadata) -> MetricsEndpoint | None:
    """The endpoint in the annotation of a pod; None if it is not of the form that the planner writes."""
    text = metadata.annotations.get(METRICS_ANNOTATION, "")
    if len(text) > _MAX_ANNOTATION_CHARS or not re.fullmatch(METRICS_PATTERN, text):
        return None
    return parse_metrics(text)
