"""Routes from Ingresses, Services and EndpointSlices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.agents.routes import (
    EndpointSlice,
    HostPolicy,
    Ingress,
    Route,
    RouteConflict,
    Service,
    build_route_table,
    needs_reload,
    ready_endpoints,
)
from pincompute.api.hosts import HostRules


def path(service: str, port: str | int, path: str = "/", kind: str = "Prefix") -> dict[str, Any]:
    wanted = {"number": port} if isinstance(port, int) else {"name": port}
    return {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": wanted}}}


def ingress(
    name: str, host: str, *paths: dict[str, Any], created: str = "2026-01-01T00:00:00Z", namespace: str = "me"
) -> Ingress:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created, "uid": "unread"}
    spec = {"rules": [{"host": host, "http": {"paths": list(paths)}}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Ingress)


def service(name: str, address: str = "10.0.0.7", **ports: int) -> Service:
    spec = {"clusterIP": address, "ports": [{"name": name, "port": port} for name, port in ports.items()]}
    return msgspec.convert({"metadata": {"name": name, "namespace": "me"}, "spec": spec}, Service)


WEB = service("web", http=80, admin=8081)

CASES = {
    "named port": (
        [ingress("a", "web.me.localhost", path("web", "admin"))],
        [WEB],
        [Route("web.me.localhost", "/", service="me/web", address="10.0.0.7", port=8081)],
    ),
    "numbered port": (
        [ingress("a", "web.me.localhost", path("web", 80))],
        [WEB],
        [Route("web.me.localhost", "/", service="me/web", address="10.0.0.7", port=80)],
    ),
    "exact path and prefix of the same name": (
        [
            ingress("a", "w", path("web", 80, "/shop/"), path("web", 8081, "/shop", "Exact")),
            ingress("b", "w", path("web", 80, "/a/", "Exact")),
        ],
        [WEB],
        [
            Route("w", "/a/", True, "me/web", "10.0.0.7", 80),
            Route("w", "/shop", False, "me/web", "10.0.0.7", 80),
            Route("w", "/shop", True, "me/web", "10.0.0.7", 8081),
        ],
    ),
    "empty path matches every path": (
        [ingress("a", "w", path("web", 80, "", "ImplementationSpecific"))],
        [WEB],
        [Route("w", "/", service="me/web", address="10.0.0.7", port=80)],
    ),
    "missing service": (
        [ingress("a", "w", path("gone", 80))],
        [WEB],
        [Route("w", "/", service="me/gone", fault="no such service: me/gone")],
    ),
    "missing port": (
        [ingress("a", "w", path("web", "metrics"))],
        [WEB],
        [Route("w", "/", service="me/web", fault="service me/web has no port metrics; its ports: 80 http, 8081 admin")],
    ),
    "headless service": (
        [ingress("a", "w", path("web", 80))],
        [service("web", "None", http=80)],
        [Route("w", "/", service="me/web", fault="service me/web has no cluster IP")],
    ),
    "external service": (
        [ingress("a", "w", path("web", 80))],
        [service("web", "")],
        [Route("w", "/", service="me/web", fault="service me/web has no cluster IP")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ingresses", "services", "routes"), CASES.values(), ids=CASES)
def test_route_of_backend(ingresses: list[Ingress], services: list[Service], routes: list[Route]) -> None:
    found = build_route_table(ingresses, {(each.metadata.namespace, each.metadata.name): each for each in services})
    assert list(found.routes) == routes
    assert found.conflicts == ()


def slice_of(service: str, port: str, number: int, *ready: bool | None) -> EndpointSlice:
    endpoints = [{"addresses": [f"10.1.0.{index}"], "conditions": {"ready": one}} for index, one in enumerate(ready)]
    metadata = {"name": f"{service}-{number}", "namespace": "me", "labels": {"kubernetes.io/service-name": service}}
    made = {"metadata": metadata, "endpoints": endpoints, "ports": [{"name": port, "port": number}]}
    return msgspec.convert(made, EndpointSlice)


def test_route_lists_ready_endpoints() -> None:
    slices = [
        slice_of("web", "http", 9090, False, False, True),
        slice_of("web", "http", 8080, True, None),
        slice_of("web", "admin", 8081, True),
        slice_of("other", "http", 80, True),
    ]
    found = ready_endpoints(slices)
    (route,) = build_route_table([ingress("a", "w", path("web", 80))], {("me", "web"): WEB}, found).routes
    assert route.endpoints == (("10.1.0.0", 8080), ("10.1.0.1", 8080), ("10.1.0.2", 9090))


def test_service_without_pods_has_no_endpoints() -> None:
    empty = {"metadata": {"name": "web-1", "namespace": "me"}, "endpoints": None, "ports": None}
    assert not ready_endpoints([msgspec.convert(empty, EndpointSlice)])


@pytest.mark.parametrize(
    ("current", "configured", "at_once"),
    [
        ("ab", "abc", False),
        ("abcd", "ab", False),
        ("bc", "ab", True),  # if b dies, no configured endpoint is left
        ("cd", "ab", True),
        ("a", "ab", False),
        ("a", "", True),
        ("", "ab", False),
    ],
)
def test_reloads_at_once_if_one_death_could_fail_requests(current: str, configured: str, at_once: bool) -> None:
    def endpoints(addresses: str) -> dict[tuple[tuple[str, str], str], set[tuple[str, int]]]:
        return {(("me", "web"), "http"): {(each, 80) for each in addresses}}

    assert needs_reload(endpoints(current), endpoints(configured)) is at_once


@pytest.mark.parametrize("order", [1, -1])
def test_older_ingress_wins_route(order: int) -> None:
    newer = ingress("a", "w", path("web", 8081), path("web", 8081, "/mine"), created="2026-01-01T00:00:02Z")
    older = ingress("b", "w", path("web", 80), created="2026-01-01T00:00:01Z")
    found = build_route_table([newer, older][::order], {("me", "web"): WEB})
    assert [(route.path, route.port) for route in found.routes] == [("/", 80), ("/mine", 8081)]
    assert found.conflicts == (RouteConflict("me/a", "me/b", "w", "/"),)


def test_default_backend_serves_every_host() -> None:
    spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    alone = msgspec.convert({"metadata": {"name": "a", "namespace": "me"}, "spec": spec}, Ingress)
    assert build_route_table([alone], {("me", "web"): WEB}).routes == (Route("", "/", False, "me/web", "10.0.0.7", 80),)


def test_backend_that_is_not_a_service() -> None:
    bucket = {"path": "/", "backend": {"resource": {"kind": "Bucket", "name": "b"}}}
    (route,) = build_route_table([ingress("a", "w", bucket)], {}).routes
    assert route.fault == "an Ingress of me has a backend that is not a service"


OLD, NEW = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
POLICY = HostPolicy(
    HostRules("localhost"), {"me": (), "you": (), "shop": ("shop.example.com",), "all": ("*.example.com",)}
)
HOSTS = {
    # host, older claim, newer claim, the namespace that gets it
    "domain before age": ("web.me.localhost", "you", "me", "me"),
    "subdomain before age": ("a.b.me.localhost", "you", "me", "me"),
    "wildcard below a domain before age": ("*.me.localhost", "you", "me", "me"),
    "age of unlisted hosts": ("old.example.org", "you", "me", "you"),
    "list before age": ("shop.example.com", "you", "shop", "shop"),
    "host in a list before a wildcard": ("shop.example.com", "all", "shop", "shop"),
    "wildcard in a list before age": ("www.example.com", "you", "all", "all"),
    "wildcard in a list has one label": ("a.b.example.com", "you", "all", "you"),
    "name of a project before age": ("me.localhost", "you", "me", "me"),
    "trailing dot": ("web.me.localhost.", "you", "me", "me"),
    "upper case": ("Web.ME.localhost", "you", "me", "me"),
    "no host": ("", "you", "me", "you"),
    "domain of no namespace": ("web.gone.localhost", "you", "me", "you"),
    "domain of another namespace": ("web.shop.localhost", "you", "me", ""),
    "all projects": ("*.localhost", "you", "me", ""),
    "this machine": ("localhost", "you", "me", ""),
    "platform": ("localhost", "you", "pincompute-system", "pincompute-system"),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("host", "older", "newer", "winner"), HOSTS.values(), ids=HOSTS)
def test_host_leads_to_one_namespace(host: str, older: str, newer: str, winner: str, order: int) -> None:
    claims = [
        ingress("a", host, path("web", 80, "/longer"), created=NEW, namespace=newer),
        ingress("b", host, path("web", 80), created=OLD, namespace=older),
    ]
    found = build_route_table(claims[::order], {}, policy=POLICY)
    assert {route.service.partition("/")[0] for route in found.routes} == ({winner} if winner else set())
    assert {each.owner for each in found.conflicts} == {winner}
    assert {each.ingress.partition("/")[0] for each in found.conflicts} == {older, newer} - {winner}


def test_one_namespace_may_share_a_host_among_ingresses() -> None:
    claims = [ingress("a", "web.me.localhost", path("web", 80)), ingress("b", "web.me.localhost", path("b", 80, "/b"))]
    found = build_route_table(claims, {}, policy=POLICY)
    assert [route.path for route in found.routes] == ["/", "/b"]
    assert found.conflicts == ()


def test_default_backend_is_a_claim_to_the_rest_of_all_hosts() -> None:
    spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    claims = [
        msgspec.convert(
            {"metadata": {"name": "a", "namespace": name, "creationTimestamp": created}, "spec": spec}, Ingress
        )
        for name, created in (("me", NEW), ("you", OLD))
    ]
    assert [route.service for route in build_route_table(claims, {}, policy=POLICY).routes] == ["you/web"]
