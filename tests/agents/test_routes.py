"""Which service answers where: rows of Ingresses and Services, and the routes that they make."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.agents.routes import EndpointSlice, Ingress, Lost, Route, Service, copies, table, wanting


def path(service: str, port: str | int, path: str = "/", kind: str = "Prefix") -> dict[str, Any]:
    wanted = {"number": port} if isinstance(port, int) else {"name": port}
    return {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": wanted}}}


def ingress(name: str, host: str, *paths: dict[str, Any], born: str = "2026-01-01T00:00:00Z") -> Ingress:
    metadata = {"name": name, "namespace": "me", "creationTimestamp": born, "uid": "unread"}
    spec = {"rules": [{"host": host, "http": {"paths": list(paths)}}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Ingress)


def service(name: str, address: str = "10.0.0.7", **ports: int) -> Service:
    spec = {"clusterIP": address, "ports": [{"name": name, "port": port} for name, port in ports.items()]}
    return msgspec.convert({"metadata": {"name": name, "namespace": "me"}, "spec": spec}, Service)


WEB = service("web", http=80, admin=8081)

ROWS = {
    "a port by its name": (
        [ingress("a", "web.me.localhost", path("web", "admin"))],
        [WEB],
        [Route("web.me.localhost", "/", service="me/web", address="10.0.0.7", port=8081)],
    ),
    "a port by its number": (
        [ingress("a", "web.me.localhost", path("web", 80))],
        [WEB],
        [Route("web.me.localhost", "/", service="me/web", address="10.0.0.7", port=80)],
    ),
    "an exact path beside the prefix of the same name": (
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
    "no path is every path": (
        [ingress("a", "w", path("web", 80, "", "ImplementationSpecific"))],
        [WEB],
        [Route("w", "/", service="me/web", address="10.0.0.7", port=80)],
    ),
    "a service that is not there": (
        [ingress("a", "w", path("gone", 80))],
        [WEB],
        [Route("w", "/", service="me/gone", fault="there is no service me/gone")],
    ),
    "a port that is not there": (
        [ingress("a", "w", path("web", "metrics"))],
        [WEB],
        [Route("w", "/", service="me/web", fault="service me/web has no port metrics; it has: 80 http, 8081 admin")],
    ),
    "a service without an address": (
        [ingress("a", "w", path("web", 80))],
        [service("web", "None", http=80)],
        [Route("w", "/", service="me/web", fault="service me/web has no address of its own")],
    ),
    "a service outside": (
        [ingress("a", "w", path("web", 80))],
        [service("web", "")],
        [Route("w", "/", service="me/web", fault="service me/web has no address of its own")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ingresses", "services", "routes"), ROWS.values(), ids=ROWS)
def test_rows(ingresses: list[Ingress], services: list[Service], routes: list[Route]) -> None:
    found = table(ingresses, {(each.metadata.namespace, each.metadata.name): each for each in services})
    assert list(found.routes) == routes
    assert found.lost == ()


def slice_of(service: str, port: str, number: int, *ready: bool | None) -> EndpointSlice:
    endpoints = [{"addresses": [f"10.1.0.{index}"], "conditions": {"ready": one}} for index, one in enumerate(ready)]
    metadata = {"name": f"{service}-{number}", "namespace": "me", "labels": {"kubernetes.io/service-name": service}}
    made = {"metadata": metadata, "endpoints": endpoints, "ports": [{"name": port, "port": number}]}
    return msgspec.convert(made, EndpointSlice)


def test_the_copies_that_may_be_asked_stand_beside_the_address() -> None:
    slices = [
        slice_of("web", "http", 9090, False, False, True),
        slice_of("web", "http", 8080, True, None),
        slice_of("web", "admin", 8081, True),
        slice_of("other", "http", 80, True),
    ]
    found = copies(slices)
    (route,) = table([ingress("a", "w", path("web", 80))], {("me", "web"): WEB}, found).routes
    assert route.copies == (("10.1.0.0", 8080), ("10.1.0.1", 8080), ("10.1.0.2", 9090))


def test_a_service_without_pods_has_no_copies() -> None:
    empty = {"metadata": {"name": "web-1", "namespace": "me"}, "endpoints": None, "ports": None}
    assert not copies([msgspec.convert(empty, EndpointSlice)])


@pytest.mark.parametrize(
    ("there", "told", "at_once"),
    [
        ("ab", "abc", False),
        ("abcd", "ab", False),
        ("bc", "ab", True),  # if b dies nobody that is told of is left
        ("cd", "ab", True),
        ("a", "ab", False),
        ("a", "", True),
        ("", "ab", False),
    ],
)
def test_it_is_told_at_once_where_a_death_would_be_felt(there: str, told: str, at_once: bool) -> None:
    def known(of: str) -> dict[tuple[tuple[str, str], str], set[tuple[str, int]]]:
        return {(("me", "web"), "http"): {(each, 80) for each in of}}

    assert wanting(known(there), known(told)) is at_once


@pytest.mark.parametrize("order", [1, -1])
def test_the_older_of_two_has_the_route(order: int) -> None:
    newer = ingress("a", "w", path("web", 8081), path("web", 8081, "/mine"), born="2026-01-01T00:00:02Z")
    older = ingress("b", "w", path("web", 80), born="2026-01-01T00:00:01Z")
    found = table([newer, older][::order], {("me", "web"): WEB})
    assert [(route.path, route.port) for route in found.routes] == [("/", 80), ("/mine", 8081)]
    assert found.lost == (Lost("me/a", "me/b", "w", "/"),)


def test_a_default_backend_answers_for_every_host() -> None:
    spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    alone = msgspec.convert({"metadata": {"name": "a", "namespace": "me"}, "spec": spec}, Ingress)
    assert table([alone], {("me", "web"): WEB}).routes == (Route("", "/", False, "me/web", "10.0.0.7", 80),)


def test_a_backend_that_is_no_service() -> None:
    bucket = {"path": "/", "backend": {"resource": {"kind": "Bucket", "name": "b"}}}
    (route,) = table([ingress("a", "w", bucket)], {}).routes
    assert route.fault == "an Ingress of me leads to something that is not a service"
