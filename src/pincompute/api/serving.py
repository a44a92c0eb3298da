"""Fields shared by kinds with an address: ports, health check and shutdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from pincompute.api.custom_resource import FieldError, ValidationRule
from pincompute.api.structs import StrictStruct

HTTP_PORT_NAME = "http"
"""Default name of the main port of a kind that serves HTTP."""
MAIN_PORT_NAME = "main"
"""Name of the main port of a kind that may use any protocol."""


class Port(StrictStruct, frozen=True):
    """A port in addition to the main one."""

    name: Annotated[
        str,
        Meta(
            description="Port name, such as metrics.",
            pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
            min_length=1,
            max_length=15,
        ),
    ]
    port: Annotated[int, Meta(description="Port number, such as 9090.", ge=1, le=65535)]
    protocol: Annotated[Literal["TCP", "UDP"], Meta(description="TCP or UDP; TCP by default.")] = "TCP"


class HealthCheck(StrictStruct, frozen=True):
    """Readiness check of a replica."""

    path: Annotated[
        str,
        Meta(
            description="Path that must answer with status 200, such as /healthz; by default, an open port is enough.",
            pattern="^(/.*)?$",
            max_length=256,
        ),
    ] = ""
    seconds: Annotated[int, Meta(description="Seconds between checks, such as 5; 2 by default.", ge=1, le=300)] = 2
    failures: Annotated[
        int,
        Meta(
            description="Consecutive failures after which a replica receives no traffic, such as 5; 3 by default.",
            ge=1,
            le=60,
        ),
    ] = 3


class Shutdown(StrictStruct, frozen=True):
    """Shutdown of a replica: it is removed from traffic before it receives SIGTERM."""

    leave_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which a replica keeps serving while load balancers remove it, such as 5; 3 by "
            "default.",
            ge=0,
            le=300,
        ),
    ] = 3
    grace_seconds: Annotated[
        int, Meta(description="Seconds between SIGTERM and SIGKILL, such as 60; 30 by default.", ge=1, le=3600)
    ] = 30


Ports = Annotated[list[Port], Meta(description="Further ports, such as - {name: metrics, port: 9090}.", max_length=32)]

SERVING_COLUMNS = (
    ("Revision", "integer", ".status.revision"),
    ("Ready", "string", ".status.readyReplicas"),
    ("Wanted", "integer", ".spec.replicas"),
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
    ("Address", "string", ".status.address"),
    ("Age", "date", ".metadata.creationTimestamp"),
)
"""Printer columns of kinds with an address. Ready counts all replicas that serve; New those of the newest revision."""
UNIQUE_PORT_RULE = ValidationRule(
    "!has(self.spec.ports) || !has(self.spec.port) || self.spec.ports.all(each, each.port != self.spec.port)",
    "spec.ports must not repeat the port of spec.port",
)


def port_errors(port: int, ports: Sequence[Port], main: str = HTTP_PORT_NAME) -> Iterator[FieldError]:
    """Port numbers and names that are used twice."""
    used = {port: main}
    names = {main}
    for index, further in enumerate(ports):
        if further.port in used:
            yield FieldError(("ports", index, "port"), f"port {further.port} is already used by '{used[further.port]}'")
        if further.name in names:
            yield FieldError(("ports", index, "name"), f"duplicate port name '{further.name}'")
        used[further.port] = further.name
        names.add(further.name)
