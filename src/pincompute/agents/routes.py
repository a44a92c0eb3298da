"""Routes: which service answers for a host and a path, and by which copies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import NamedTuple

import msgspec

Key = tuple[str, str]
"""Namespace and name."""
SERVICE_NAME = "kubernetes.io/service-name"
"""The label by which an EndpointSlice says whose it is."""


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    labels: dict[str, str] = {}


class PortOfBackend(msgspec.Struct):
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        return self.name or str(self.number)


class BackendService(msgspec.Struct):
    name: str
    port: PortOfBackend = msgspec.field(default_factory=PortOfBackend)


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
    default_backend: Backend | None = None


class Ingress(msgspec.Struct):
    metadata: Metadata
    spec: IngressSpec = msgspec.field(default_factory=IngressSpec)


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
    """Nothing said is as good as yes."""


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
    """Empty for every host that nobody else claims."""
    path: str
    exact: bool = False
    """Whether it is this path only, or all below it as well."""
    service: str = ""
    """As a person says it: `me/hello`."""
    address: str = ""
    port: int = 0
    fault: str = ""
    """Why there is no address, as a sentence."""
    copies: tuple[tuple[str, int], ...] = ()
    """Where each copy that may be asked is itself found, for when one of them has just died."""


class Lost(NamedTuple):
    """A route that an older Ingress has already."""

    ingress: str
    holder: str
    host: str
    path: str


class Table(NamedTuple):
    routes: tuple[Route, ...]
    lost: tuple[Lost, ...]


Found = Mapping[tuple[Key, str], AbstractSet[tuple[str, int]]]
"""The copies by service and by the name of its port."""
ENOUGH = 2
"""Copies that are known: where one of them dies, another is asked."""
NOBODY: Found = MappingProxyType({})


def copies(slices: Iterable[EndpointSlice]) -> Found:
    """Those that may be asked. Of one port there are several numbers while it changes."""
    found: dict[tuple[Key, str], set[tuple[str, int]]] = {}
    for each in slices:
        service = (each.metadata.namespace, each.metadata.labels.get(SERVICE_NAME, ""))
        addresses = [one.addresses[0] for one in each.endpoints or () if one.conditions.ready is not False]
        for port in each.ports or ():
            if port.port:
                found.setdefault((service, port.name or ""), set()).update((one, port.port) for one in addresses)
    return found


def wanting(found: Found, told: Found) -> bool:
    """Whether of some service's copies so few are told of that a death among them would be felt."""
    return any(len(there & told.get(whose, frozenset())) < min(ENOUGH, len(there)) for whose, there in found.items())


def table(ingresses: Iterable[Ingress], services: Mapping[Key, Service], found: Found = NOBODY) -> Table:
    """One route for each host and path, sorted; where two Ingresses want the same, the older has it."""
    routes: list[Route] = []
    lost: list[Lost] = []
    holders: dict[tuple[str, str, bool], str] = {}
    for ingress in sorted(ingresses, key=_age):
        name = f"{ingress.metadata.namespace}/{ingress.metadata.name}"
        for route in _routes(ingress, services, found):
            place = (route.host, route.path, route.exact)
            if place in holders:
                lost.append(Lost(name, holders[place], route.host, route.path))
            else:
                holders[place] = name
                routes.append(route)
    return Table(tuple(sorted(routes)), tuple(lost))


def _age(ingress: Ingress) -> tuple[str, str, str]:
    # Timestamps are of whole seconds; the name decides between equals, so that every pass decides alike.
    metadata = ingress.metadata
    return metadata.creation_timestamp, metadata.namespace, metadata.name


def _routes(ingress: Ingress, services: Mapping[Key, Service], found: Found) -> Iterator[Route]:
    namespace = ingress.metadata.namespace
    for rule in ingress.spec.rules:
        for path in rule.http.paths if rule.http else ():
            exact = path.path_type == "Exact"
            place = Route(rule.host, _clean(path.path, exact), exact)
            yield _lead(place, path.backend, namespace, services, found)
    if ingress.spec.default_backend:
        yield _lead(Route("", "/"), ingress.spec.default_backend, namespace, services, found)


def _clean(path: str, exact: bool) -> str:
    """A prefix is a row of whole words, so `/shop/` and `/shop` are the same one."""
    rooted = path if path.startswith("/") else f"/{path}"
    return rooted if exact else rooted.rstrip("/") or "/"


def _lead(place: Route, backend: Backend, namespace: str, services: Mapping[Key, Service], found: Found) -> Route:
    """The place with the address that answers there, or with the sentence that says why none does."""
    if backend.service is None:
        return place._replace(fault=f"an Ingress of {namespace} leads to something that is not a service")
    wanted = backend.service
    name = f"{namespace}/{wanted.name}"
    service = services.get((namespace, wanted.name))
    if service is None:
        return place._replace(service=name, fault=f"there is no service {name}")
    if service.spec.cluster_ip in ("", "None"):
        return place._replace(service=name, fault=f"service {name} has no address of its own")
    port = _port(wanted.port, service)
    if port is None:
        there = ", ".join(f"{each.port} {each.name}".strip() for each in service.spec.ports) or "none"
        return place._replace(service=name, fault=f"service {name} has no port {wanted.port}; it has: {there}")
    there = tuple(sorted(found.get(((namespace, wanted.name), port.name), ())))
    return place._replace(service=name, address=service.spec.cluster_ip, port=port.port, copies=there)


def _port(wanted: PortOfBackend, service: Service) -> ServicePort | None:
    for each in service.spec.ports:
        if (each.name == wanted.name) if wanted.name else (each.port == wanted.number):
            return each
    return None
