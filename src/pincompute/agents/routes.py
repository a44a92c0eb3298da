"""Routes: the service and endpoints for each host and path, from Ingresses and Services. Pure.

A host leads to one namespace, so that no Ingress of another one gets requests for it, by a longer path for instance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from pincompute.api.hosts import HostRules, Standing, normalize_host
from pincompute.api.names import HOSTS_ANNOTATION

Key = tuple[str, str]
"""Namespace and name."""
SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice with the name of its Service."""


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Namespace(msgspec.Struct):
    metadata: Metadata

    @property
    def hosts(self) -> list[str]:
        """The custom hosts that the namespace was given."""
        return self.metadata.annotations.get(HOSTS_ANNOTATION, "").split()


class BackendPort(msgspec.Struct):
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        return self.name or str(self.number)


class BackendService(msgspec.Struct):
    name: str
    port: BackendPort = msgspec.field(default_factory=BackendPort)


class Backend(msgspec.Struct):
    service: BackendService | None = None


class IngressPath(msgspec.Struct, rename="camel"):
    backend: Backend
    path: str = ""
    path_type: str = "Prefix"


class Http(msgspec.Struct):
    paths: list[IngressPath] = []


class Rule(msgspec.Struct):
    host: str = ""
    http: Http | None = None


class IngressSpec(msgspec.Struct, rename="camel"):
    rules: list[Rule] = []
    ingress_class_name: str | None = None
    default_backend: Backend | None = None


class LoadBalancer(msgspec.Struct):
    ingress: list[dict[str, Any]] = []


class IngressStatus(msgspec.Struct, rename="camel"):
    load_balancer: LoadBalancer = msgspec.field(default_factory=LoadBalancer)


class Ingress(msgspec.Struct):
    metadata: Metadata
    spec: IngressSpec = msgspec.field(default_factory=IngressSpec)
    status: IngressStatus = msgspec.field(default_factory=IngressStatus)

    @property
    def is_ours(self) -> bool:
        """Whether this ingress serves it: another class has a controller of its own."""
        return not self.spec.ingress_class_name


class ServicePort(msgspec.Struct):
    port: int
    name: str = ""


class ServiceSpec(msgspec.Struct, rename="camel"):
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ports: list[ServicePort] = []


class Service(msgspec.Struct):
    metadata: Metadata
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class Conditions(msgspec.Struct):
    ready: bool | None = None
    """None counts as ready, as in Kubernetes."""


class Endpoint(msgspec.Struct):
    addresses: list[str] = []
    conditions: Conditions = msgspec.field(default_factory=Conditions)


class EndpointPort(msgspec.Struct):
    port: int | None = None
    name: str | None = None


class EndpointSlice(msgspec.Struct):
    metadata: Metadata
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None


class Route(NamedTuple):
    host: str
    """Empty for all hosts without a route of their own."""
    path: str
    exact: bool = False
    """Whether the route matches only this path, or also those below it."""
    service: str = ""
    """Namespace and name: `me/hello`."""
    address: str = ""
    port: int = 0
    fault: str = ""
    """Reason why the route has no address, as a message."""
    endpoints: tuple[tuple[str, int], ...] = ()
    """Addresses of the ready pods, for requests that the service's address does not answer."""


class RouteConflict(NamedTuple):
    """A route that an Ingress does not get."""

    ingress: str
    owner: str
    """The older Ingress that has it, or the namespace to which the host belongs; empty if it belongs to none."""
    host: str
    path: str


class RouteTable(NamedTuple):
    routes: tuple[Route, ...]
    conflicts: tuple[RouteConflict, ...]


class HostPolicy(NamedTuple):
    """What decides to which namespace a host belongs."""

    rules: HostRules = HostRules("")
    listed: Mapping[str, Collection[str]] = MappingProxyType({})
    """Custom hosts that a namespace was given, for all namespaces of the cluster."""

    def standing(self, host: str, namespace: str) -> Standing:
        if not host:
            # It has the requests for hosts without a route of their own; none of them are a project's.
            return Standing.UNLISTED
        return self.rules.standing(host, namespace, self.listed.get(namespace, ()), self.listed.__contains__)


ReadyEndpoints = Mapping[tuple[Key, str], AbstractSet[tuple[str, int]]]
"""Addresses of ready pods, by service and port name."""
MIN_CONFIGURED_ENDPOINTS = 2
"""With fewer current endpoints in nginx's configuration, the death of one pod could fail requests."""
NO_ENDPOINTS: ReadyEndpoints = MappingProxyType({})


def ready_endpoints(slices: Iterable[EndpointSlice]) -> ReadyEndpoints:
    """Endpoints that accept requests. During a change, one named port can have several numbers."""
    found: dict[tuple[Key, str], set[tuple[str, int]]] = {}
    for endpoint_slice in slices:
        metadata = endpoint_slice.metadata
        service = (metadata.namespace, metadata.labels.get(SERVICE_NAME, ""))
        addresses = [each.addresses[0] for each in endpoint_slice.endpoints or () if each.conditions.ready is not False]
        for port in endpoint_slice.ports or ():
            if port.port:
                found.setdefault((service, port.name or ""), set()).update((each, port.port) for each in addresses)
    return found


def needs_reload(current: ReadyEndpoints, configured: ReadyEndpoints) -> bool:
    """Whether nginx knows so few of a service's current endpoints that the death of one could fail requests."""
    return any(
        len(endpoints & configured.get(service_port, frozenset())) < min(MIN_CONFIGURED_ENDPOINTS, len(endpoints))
        for service_port, endpoints in current.items()
    )


def build_route_table(
    ingresses: Collection[Ingress],
    services: Mapping[Key, Service],
    endpoints: ReadyEndpoints = NO_ENDPOINTS,
    policy: HostPolicy = HostPolicy(),  # noqa: B008  (a constant)
) -> RouteTable:
    """One route for each host and path, sorted. If two Ingresses have the same one, the older Ingress wins."""
    namespaces = _host_owners(ingresses, policy)
    routes: list[Route] = []
    conflicts: list[RouteConflict] = []
    owners: dict[tuple[str, str, bool], str] = {}
    for ingress in sorted(ingresses, key=_creation_order):
        name = f"{ingress.metadata.namespace}/{ingress.metadata.name}"
        for route in _ingress_routes(ingress, services, endpoints):
            location = (route.host, route.path, route.exact)
            if namespaces.get(route.host) != ingress.metadata.namespace:
                conflicts.append(RouteConflict(name, namespaces.get(route.host, ""), route.host, route.path))
            elif location in owners:
                conflicts.append(RouteConflict(name, owners[location], route.host, route.path))
            else:
                owners[location] = name
                routes.append(route)
    return RouteTable(tuple(sorted(routes)), tuple(conflicts))


def _host_owners(ingresses: Iterable[Ingress], policy: HostPolicy) -> dict[str, str]:
    """The namespace of each host: that with the best right to it, and of several that with the oldest Ingress."""
    ranks: dict[str, tuple[Standing, tuple[str, str, str]]] = {}
    owners: dict[str, str] = {}
    for ingress in ingresses:
        namespace = ingress.metadata.namespace
        for host in {*(normalize_host(rule.host) for rule in ingress.spec.rules), *_default_hosts(ingress)}:
            rank = policy.standing(host, namespace), _creation_order(ingress)
            if rank[0] is not Standing.NONE and (host not in ranks or rank < ranks[host]):
                ranks[host], owners[host] = rank, namespace
    return owners


def _default_hosts(ingress: Ingress) -> list[str]:
    return [""] if ingress.spec.default_backend else []


def _creation_order(ingress: Ingress) -> tuple[str, str, str]:
    # Timestamps have whole seconds. The name breaks ties, so that every pass gives the same result.
    metadata = ingress.metadata
    return metadata.creation_timestamp, metadata.namespace, metadata.name


def _ingress_routes(ingress: Ingress, services: Mapping[Key, Service], endpoints: ReadyEndpoints) -> Iterator[Route]:
    namespace = ingress.metadata.namespace
    for rule in ingress.spec.rules:
        for path in rule.http.paths if rule.http else ():
            exact = path.path_type == "Exact"
            route = Route(normalize_host(rule.host), _normalize_path(path.path, exact), exact)
            yield _with_backend(route, path.backend, namespace, services, endpoints)
    if ingress.spec.default_backend:
        yield _with_backend(Route("", "/"), ingress.spec.default_backend, namespace, services, endpoints)


def _normalize_path(path: str, exact: bool) -> str:
    """A prefix consists of whole path elements, so that `/shop/` and `/shop` are the same."""
    rooted = path if path.startswith("/") else f"/{path}"
    return rooted if exact else rooted.rstrip("/") or "/"


def _with_backend(
    route: Route, backend: Backend, namespace: str, services: Mapping[Key, Service], endpoints: ReadyEndpoints
) -> Route:
    """The route with the address of its service, or with the reason why there is none."""
    if backend.service is None:
        return route._replace(fault=f"an Ingress of {namespace} has a backend that is not a service")
    wanted = backend.service
    name = f"{namespace}/{wanted.name}"
    service = services.get((namespace, wanted.name))
    if service is None:
        return route._replace(service=name, fault=f"no such service: {name}")
    if service.spec.cluster_ip in ("", "None"):
        return route._replace(service=name, fault=f"service {name} has no cluster IP")
    port = _find_port(wanted.port, service)
    if port is None:
        ports = ", ".join(f"{each.port} {each.name}".strip() for each in service.spec.ports) or "none"
        return route._replace(service=name, fault=f"service {name} has no port {wanted.port}; its ports: {ports}")
    ready = tuple(sorted(endpoints.get(((namespace, wanted.name), port.name), ())))
    return route._replace(service=name, address=service.spec.cluster_ip, port=port.port, endpoints=ready)


def _find_port(wanted: BackendPort, service: Service) -> ServicePort | None:
    for port in service.spec.ports:
        if (port.name == wanted.name) if wanted.name else (port.port == wanted.number):
            return port
    return None
