"""What kinds that answer share: their ports, when a copy may be asked, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from pincompute.api.noun import Fault, Rule
from pincompute.api.wire import Strict

PORT_NAME = "http"
"""What the one port of the short form is called, where it speaks HTTP."""
MAIN_PORT_NAME = "main"
"""What it is called where it may speak anything."""


class Port(Strict, frozen=True):
    """A port beside the main one."""

    name: Annotated[
        str,
        Meta(
            description="Its name, such as metrics.",
            pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
            min_length=1,
            max_length=15,
        ),
    ]
    port: Annotated[int, Meta(description="Its number, such as 9090.", ge=1, le=65535)]
    protocol: Annotated[Literal["TCP", "UDP"], Meta(description="TCP or UDP; TCP by default.")] = "TCP"


class HealthCheck(Strict, frozen=True):
    """When a copy may be asked."""

    path: Annotated[
        str,
        Meta(
            description="It answers here with 200, such as /healthz; by default, that it listens is enough.",
            pattern="^(/.*)?$",
            max_length=256,
        ),
    ] = ""
    seconds: Annotated[int, Meta(description="Seconds between two checks, such as 5; 2 by default.", ge=1, le=300)] = 2
    failures: Annotated[
        int, Meta(description="Failed checks after which it is asked no more, such as 5; 3 by default.", ge=1, le=60)
    ] = 3


class Shutdown(Strict, frozen=True):
    """How a copy ends: it leaves the traffic first."""

    leave_seconds: Annotated[
        int,
        Meta(
            description="Seconds that it goes on answering while all hear that it leaves; 3 by default.", ge=0, le=300
        ),
    ] = 3
    grace_seconds: Annotated[
        int, Meta(description="Seconds it then has to end by itself, such as 60; 30 by default.", ge=1, le=3600)
    ] = 30


Ports = Annotated[list[Port], Meta(description="Further ports, such as - {name: metrics, port: 9090}.", max_length=32)]

COPIES = (
    ("Revision", "integer", ".status.revision"),
    ("Ready", "string", ".status.readyReplicas"),
    ("Wanted", "integer", ".spec.replicas"),
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
    ("Address", "string", ".status.address"),
    ("Age", "date", ".metadata.creationTimestamp"),
)
"""What `kubectl get` prints of kinds whose copies answer on an address."""
PORT_ONCE = Rule(
    "!has(self.spec.ports) || self.spec.ports.all(each, each.port != self.spec.port)",
    "spec.ports names the port of spec.port again",
)


def port_faults(port: int, ports: Sequence[Port], main: str = PORT_NAME) -> Iterator[Fault]:
    """No number and no name stands twice."""
    taken = {port: main}
    names = {main}
    for index, each in enumerate(ports):
        if each.port in taken:
            yield Fault(("ports", index, "port"), f"port {each.port} is that of '{taken[each.port]}' already")
        if each.name in names:
            yield Fault(("ports", index, "name"), f"two ports are called '{each.name}'")
        taken[each.port] = each.name
        names.add(each.name)
