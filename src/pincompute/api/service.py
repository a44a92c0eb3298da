"""PinterestService: a long-running stateless service with an address, or a worker without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import FieldError, ValidationRule
from pincompute.api.ingress import IngressAnnotations, ingress_annotation_errors
from pincompute.api.metrics_endpoint import parse_metrics
from pincompute.api.mtls import MTLS_PORT, Callers, caller_errors, mtls_port_errors
from pincompute.api.serverset import Serverset
from pincompute.api.serving import (
    HTTP_PORT_NAME,
    SERVING_COLUMNS,
    UNIQUE_PORT_RULE,
    HealthCheck,
    Ports,
    Shutdown,
    port_errors,
)
from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import PauseReason, RestartCount, StrictStruct, count_or_percent_meta
from pincompute.api.workload import Workload, WorkloadSpec

_OBJECT_NAME = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
_HOST_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class LoadBalancer(StrictStruct, frozen=True):
    """Exposure of a service inside and outside the cluster."""

    internal: Annotated[bool, Meta(description="Only reachable inside the cluster; false by default.")] = False
    host: Annotated[
        str,
        Meta(description="Host name, such as shop.example.com; NAME.PROJECT.DOMAIN by default.", max_length=253),
    ] = ""
    class_: Annotated[
        str,
        Meta(
            description="Ingress class, such as nginx; the cluster's default class by default.",
            pattern=_OBJECT_NAME,
            max_length=253,
        ),
    ] = msgspec.field(name="class", default="")
    path: Annotated[
        str,
        Meta(description="Path prefix, such as /api; / by default.", pattern="^/.*$", max_length=256),
    ] = "/"
    tls: Annotated[
        str,
        Meta(description="Secret with the TLS certificate, such as shop-tls; plain HTTP by default.", max_length=63),
    ] = ""
    issuer: Annotated[
        str,
        Meta(
            description="Issuer of cert-manager for the TLS certificate, instead of tls, such as letsencrypt, if the "
            "project opens it; none by default.",
            pattern=_OBJECT_NAME,
            max_length=253,
        ),
    ] = ""
    annotations: IngressAnnotations = {}
    port: Annotated[
        int,
        Meta(description="Port for clients inside the cluster, such as 8080; 80 by default.", ge=1, le=65535),
    ] = 80
    port_name: Annotated[
        str,
        Meta(
            description="Name of that port, such as web; http by default.",
            pattern="^([a-z]([-a-z0-9]*[a-z0-9])?)?$",
            max_length=15,
        ),
    ] = HTTP_PORT_NAME
    health_check: Annotated[HealthCheck, Meta(description="Readiness check of a replica.")] = HealthCheck()

    @property
    def has_tls(self) -> bool:
        return bool(self.tls or self.issuer)


class Rollout(StrictStruct, frozen=True):
    """Rollout of a new revision."""

    surge: Annotated[
        int | str,
        count_or_percent_meta(
            "Replicas in addition to the wanted number during a rollout, such as 2 or 25%; 25% by default."
        ),
    ] = "25%"
    unavailable: Annotated[
        int | str,
        count_or_percent_meta("Replicas that may be unavailable during a rollout, such as 1 or 10%; 0 by default."),
    ] = 0
    min_ready_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which a new replica must be ready before it counts as available, such as 10; 0 "
            "by default.",
            ge=0,
            le=3600,
        ),
    ] = 0
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds without progress after which a rollout has failed, such as 300; 600 by default.",
            ge=10,
            le=86_400,
        ),
    ] = 600
    paused: PauseReason = ""
    restarts: RestartCount = 0


class ServiceSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program, ports, replicas and rollout of a service."""

    port: Annotated[
        int, Meta(description="Port that the program listens on, such as 8080; only a worker has none.", ge=1, le=65535)
    ] = 0
    worker: Annotated[
        bool,
        Meta(
            description="The program takes its work from elsewhere, such as a queue, and listens on no port: it has no "
            "address, and is ready while it runs. false by default."
        ),
    ] = False
    ports: Ports = []
    replicas: Annotated[int, Meta(description="Number of replicas, such as 3; 1 by default.", ge=0, le=10_000)] = 1
    load_balancer: Annotated[LoadBalancer, Meta(description="Exposure inside and outside the cluster.")] = (
        LoadBalancer()
    )
    rollout: Annotated[Rollout, Meta(description="Rollout of a new revision.")] = Rollout()
    unavailable: Annotated[
        int | str,
        count_or_percent_meta(
            "Replicas that may be unavailable while nodes are drained, such as 1 or 10%; 25% by default."
        ),
    ] = "25%"
    shutdown: Annotated[Shutdown, Meta(description="Shutdown of a replica.")] = Shutdown()
    serverset: Annotated[
        Serverset | None,
        Meta(description="Register ready replicas in ZooKeeper, such as {} or {readers: [ads/feed]}; off by default."),
    ] = None
    callers: Callers = []

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        if self.serverset:
            yield from self.serverset.field_errors(("serverset",))
        yield from caller_errors(self.callers)
        if self.worker:
            yield from _worker_errors(self)
        elif not self.port:
            yield FieldError(("port",), "port is missing", next="write port: 8080, or worker: true")
        else:
            yield from port_errors(self.port, self.ports)
            yield from mtls_port_errors(self.callers, self.port, self.ports)
            yield from _client_port_errors(self)
            yield from _public_metrics_errors(self)
        if is_zero_share(self.rollout.surge) and is_zero_share(self.rollout.unavailable):
            yield FieldError(
                ("rollout",),
                "surge and unavailable are both 0, so that no replica could be replaced",
                next="surge: 25%",
            )
        host = self.load_balancer.host
        if host and (not re.fullmatch(_HOST_NAME, host) or ".." in host):
            yield FieldError(("loadBalancer", "host"), f"invalid host name '{host}'", "such as shop.example.com")
        yield from _ingress_errors(self.load_balancer)

    @property
    def has_ingress(self) -> bool:
        """Reachable from outside the cluster."""
        return not self.worker and not self.load_balancer.internal


def _worker_errors(spec: ServiceSpec) -> Iterator[FieldError]:
    """A worker has nothing to connect to. Fields that would be ignored are rejected."""
    present = {
        "port": spec.port,
        "ports": spec.ports,
        "loadBalancer": spec.load_balancer != LoadBalancer(),
        "serverset": spec.serverset is not None,
        "callers": spec.callers != [],
    }
    for field, is_set in present.items():
        if is_set:
            what = f"a worker has no {field if field.startswith('port') else 'address'}"
            yield FieldError((field,), what, next=f"remove {field}, or worker: true")


def _ingress_errors(balancer: LoadBalancer) -> Iterator[FieldError]:
    """An Ingress has one source of its certificate, and an internal service has no Ingress."""
    yield from ingress_annotation_errors(balancer.annotations, ("loadBalancer", "annotations"))
    if balancer.tls and balancer.issuer:
        note = "an issuer stores its certificate in a Secret that the platform names"
        yield FieldError(("loadBalancer", "issuer"), "tls and issuer are both set", note, "remove one")
    for field, is_set in (("issuer", balancer.issuer), ("annotations", balancer.annotations)):
        if balancer.internal and is_set:
            what = f"an internal service has no Ingress, and so no {field}"
            yield FieldError(("loadBalancer", field), what, next=f"remove {field}, or internal: true")


def _public_metrics_errors(spec: ServiceSpec) -> Iterator[FieldError]:
    """Metrics tell load, versions and failures. The port of a public address would show them to every client."""
    endpoint = parse_metrics(spec.metrics)
    if endpoint and endpoint.port == spec.port and spec.has_ingress:
        what = (
            f"metrics is port {spec.port}, which is the service's port: its address would show the metrics to everyone"
        )
        yield FieldError(
            ("metrics",), what, next="serve them on another port, such as 9102, or loadBalancer: {internal: true}"
        )


def _client_port_errors(spec: ServiceSpec) -> Iterator[FieldError]:
    """All ports belong to one Kubernetes Service, in which numbers and names must be unique."""
    main = spec.load_balancer
    if spec.callers and main.port == MTLS_PORT:
        what = f"port {MTLS_PORT} is that of mutual TLS"
        yield FieldError(("loadBalancer", "port"), what, next="loadBalancer: {port: 80}")
    for index, port in enumerate(spec.ports):
        if (port.port, port.protocol) == (main.port, "TCP"):
            what = f"port {port.port} is already the load balancer's port '{main.port_name}'"
            yield FieldError(("ports", index, "port"), what, next="loadBalancer: {port: NUMBER}")
        if port.name == main.port_name != HTTP_PORT_NAME:
            yield FieldError(("ports", index, "name"), f"duplicate port name '{port.name}'")
    if (spec.ports or spec.callers) and not main.port_name:
        yield FieldError(
            ("loadBalancer", "portName"),
            "every port needs a name if there are several",
            next=f"portName: {HTTP_PORT_NAME}",
        )


def is_zero_share(share: int | str) -> bool:
    return str(share).rstrip("%") == "0"


class PinterestService(Workload, frozen=True, kw_only=True, rename=None):
    """A long-running stateless service with an address, or a worker without one."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("pts",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = SERVING_COLUMNS
    KIND_NAME: ClassVar[str] = "a service"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("Deployment",)
    SCALABLE: ClassVar[bool] = True
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *Workload.VALIDATION_RULES,
        ValidationRule(
            "has(self.spec.port) != (has(self.spec.worker) && self.spec.worker)",
            "spec.port is missing: write port: 8080, or worker: true without a port",
        ),
        ValidationRule(
            "!has(self.spec.worker) || !self.spec.worker || !has(self.spec.ports) && !has(self.spec.loadBalancer) && "
            "!has(self.spec.serverset) && !has(self.spec.callers)",
            "spec.worker: a worker has neither ports nor loadBalancer nor serverset nor callers",
        ),
        UNIQUE_PORT_RULE,
    )

    spec: ServiceSpec
    status: WorkloadStatus = WorkloadStatus()
    kind: str = "PinterestService"
