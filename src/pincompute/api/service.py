"""PinterestService: a long-running stateless service that answers on an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from pincompute.api.noun import Fault, Rule
from pincompute.api.serving import COPIES, PORT_NAME, PORT_ONCE, HealthCheck, Ports, Shutdown, port_faults
from pincompute.api.status import Status
from pincompute.api.wire import Paused, Restarts, Strict, share
from pincompute.api.workload import Workload, WorkloadSpec

_DNS = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class LoadBalancer(Strict, frozen=True):
    """How it is found, inside the cluster and from outside."""

    internal: Annotated[bool, Meta(description="Only found inside the cluster; false by default.")] = False
    host: Annotated[
        str,
        Meta(description="Its name, such as shop.example.com; NAME.PROJECT.DOMAIN by default.", max_length=253),
    ] = ""
    path: Annotated[
        str,
        Meta(
            description="The paths below which it answers, such as /api; / by default.", pattern="^/.*$", max_length=256
        ),
    ] = "/"
    tls: Annotated[
        str,
        Meta(description="The Secret with its certificate, such as shop-tls; plain HTTP by default.", max_length=63),
    ] = ""
    port: Annotated[
        int,
        Meta(description="What clients inside the cluster ask, such as 8080; 80 by default.", ge=1, le=65535),
    ] = 80
    port_name: Annotated[
        str,
        Meta(
            description="What that port is called where it is asked for by name, such as web; http by default.",
            pattern="^([a-z]([-a-z0-9]*[a-z0-9])?)?$",
            max_length=15,
        ),
    ] = PORT_NAME
    health_check: Annotated[HealthCheck, Meta(description="When a copy may be asked.")] = HealthCheck()


class Rollout(Strict, frozen=True):
    """How a new revision takes the place of the old one."""

    surge: Annotated[int | str, share("Copies beyond the wanted ones, such as 2 or 25%; 25% by default.")] = "25%"
    unavailable: Annotated[int | str, share("Copies that may be missing, such as 1 or 10%; 0 by default.")] = 0
    min_ready_seconds: Annotated[
        int,
        Meta(
            description="Seconds that a new copy must answer before it counts, such as 10; 0 by default.", ge=0, le=3600
        ),
    ] = 0
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds without progress after which it has failed, such as 300; 600 by default.",
            ge=10,
            le=86_400,
        ),
    ] = 600
    paused: Paused = ""
    restarts: Restarts = 0


class ServiceSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What runs, and where it answers."""

    port: Annotated[int, Meta(description="The port that the program listens on, such as 8080.", ge=1, le=65535)]
    ports: Ports = []
    replicas: Annotated[
        int, Meta(description="How many copies run side by side, such as 3; 1 by default.", ge=0, le=10_000)
    ] = 1
    load_balancer: Annotated[LoadBalancer, Meta(description="How it is found from outside.")] = LoadBalancer()
    rollout: Annotated[Rollout, Meta(description="How a new revision takes the place of the old one.")] = Rollout()
    unavailable: Annotated[
        int | str, share("Copies that may be away while nodes are emptied, such as 1 or 10%; 25% by default.")
    ] = "25%"
    shutdown: Annotated[Shutdown, Meta(description="How a copy ends.")] = Shutdown()

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        yield from port_faults(self.port, self.ports)
        yield from _client_faults(self)
        if nothing(self.rollout.surge) and nothing(self.rollout.unavailable):
            yield Fault(
                ("rollout",),
                "surge and unavailable are both 0, so that no copy could ever be replaced",
                next="surge: 25%",
            )
        host = self.load_balancer.host
        if host and (not re.fullmatch(_DNS, host) or ".." in host):
            yield Fault(("loadBalancer", "host"), f"'{host}' cannot be a host's name", "such as shop.example.com")


def _client_faults(spec: ServiceSpec) -> Iterator[Fault]:
    """What clients ask is one Service: its ports differ in number and in name."""
    main = spec.load_balancer
    for index, each in enumerate(spec.ports):
        if (each.port, each.protocol) == (main.port, "TCP"):
            what = f"port {each.port} is what clients ask of '{main.port_name}' already"
            yield Fault(("ports", index, "port"), what, next="loadBalancer: {port: NUMBER}")
        if each.name == main.port_name != PORT_NAME:
            yield Fault(("ports", index, "name"), f"two ports are called '{each.name}'")
    if spec.ports and not main.port_name:
        yield Fault(("loadBalancer", "portName"), "one of several ports has no name", next=f"portName: {PORT_NAME}")


def nothing(share: int | str) -> bool:
    return str(share).rstrip("%") == "0"


class PinterestService(Workload, frozen=True, kw_only=True, rename=None):
    """A long-running service that answers on an address."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("pts",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = COPIES
    SCALES: ClassVar[bool] = True
    RULES: ClassVar[tuple[Rule, ...]] = (
        *Workload.RULES,
        PORT_ONCE,
    )

    spec: ServiceSpec
    status: Status = Status()
    kind: str = "PinterestService"
