"""The field `metrics`: port and path at which a program serves its metrics in the Prometheus text format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from pincompute.api.custom_resource import FieldError
from pincompute.api.names import METRICS_PORT_NAME
from pincompute.api.pod_template import containers_of, list_at
from pincompute.api.structs import METRICS_PATTERN
from pincompute.objects.content import Object

TARGETS_PATH = "/targets"
"""Page of the metrics agent from which Prometheus reads its targets."""
USE_PATH = "/use"
"""Page of the metrics agent with the resources that workloads use."""
DEFAULT_PATH = "/metrics"
MAX_PORT = 65535

MetricsField = Annotated[
    int | str,
    Meta(
        description="Port of the metrics in the Prometheus text format, such as 9102, or 9102/internal/metrics for "
        "another path than /metrics; none by default.",
        extra_json_schema={
            "x-kubernetes-int-or-string": True,
            "minimum": 1,
            "maximum": MAX_PORT,
            "pattern": METRICS_PATTERN,
            "maxLength": 256,
        },
    ),
]


class MetricsEndpoint(NamedTuple):
    port: int
    path: str = DEFAULT_PATH

    def __str__(self) -> str:
        """Text of the annotation of a pod, such as `9102/metrics`."""
        return f"{self.port}{self.path}"


def parse_metrics(value: int | str) -> MetricsEndpoint | None:
    """The endpoint of a valid field; None without one."""
    port, slash, path = str(value).partition("/")
    return MetricsEndpoint(int(port), f"{slash}{path}" or DEFAULT_PATH) if value else None


def metrics_errors(value: int | str, template: Object, ports: Any = ()) -> Iterator[FieldError]:
    """A number that is no port, and another port of the pod with the name that this one would get."""
    endpoint = parse_metrics(value)
    if endpoint is None:
        return
    if not 1 <= endpoint.port <= MAX_PORT:
        yield FieldError(("metrics",), f"metrics is {value!r}: ports are 1 to {MAX_PORT}", next="write metrics: 9102")
        return
    in_template = ((each.get("name"), each.get("containerPort"), each.get("protocol")) for each in _ports(template))
    further = ((each.name, each.port, each.protocol) for each in ports)
    for name, port, protocol in (*in_template, *further):
        if name == METRICS_PORT_NAME and (port, protocol or "TCP") != (endpoint.port, "TCP"):
            what = f"metrics is port {endpoint.port}, and the port named '{METRICS_PORT_NAME}' is {port}"
            yield FieldError(("metrics",), what, next=f"write metrics: {port}, or give that port another name")


def _ports(template: Object) -> Iterator[Object]:
    for _, container in containers_of(template, ()):
        yield from (each for each in list_at(container, "ports") if isinstance(each, dict))
