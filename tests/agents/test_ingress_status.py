"""Hosts that the ingress agent reports in the status of Ingresses."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.agents.ingress_status import MAX_REPORTED_HOSTS, changed_points, port_of
from pincompute.agents.routes import Ingress, RouteConflict


def build_ingress(*hosts: str, points: list[dict[str, Any]] | None = None, **spec: Any) -> Ingress:
    body = {
        "metadata": {"name": "web", "namespace": "me"},
        "spec": {"rules": [{"host": each} for each in hosts], **spec},
        "status": {"loadBalancer": {"ingress": points or []}},
    }
    return msgspec.convert(body, Ingress)


def reported(ingress: Ingress, *conflicts: RouteConflict) -> list[dict[str, Any]] | None:
    """The points to write; None if the status has them already."""
    return next((points for _, points in changed_points([ingress], conflicts, 8080)), None)


def point(host: str, **port: str) -> dict[str, Any]:
    return {"hostname": host, "ports": [{"port": 8080, "protocol": "TCP", **port}]}


def test_reports_each_host_once() -> None:
    assert reported(build_ingress("b.me.localhost", "A.me.localhost", "b.me.localhost")) == [
        point("a.me.localhost"),
        point("b.me.localhost"),
    ]


def test_writes_nothing_if_the_status_is_current() -> None:
    assert reported(build_ingress("a.me.localhost", points=[point("a.me.localhost")])) is None
    assert reported(build_ingress("b.me.localhost", points=[point("a.me.localhost")])) == [point("b.me.localhost")]


def test_reports_taken_host_without_its_owner() -> None:
    conflict = RouteConflict("me/web", "you/secret-project", "a.me.localhost", "/")
    elsewhere = RouteConflict("you/web", "me/web", "b.me.localhost", "/")
    found = reported(build_ingress("a.me.localhost", "b.me.localhost"), conflict, elsewhere)
    assert found == [point("a.me.localhost", error="pinterest.com/HostTaken"), point("b.me.localhost")]


def test_status_of_a_hostile_ingress_is_bounded_and_valid() -> None:
    """The API server refuses wildcards as host names, and a thousand hosts would be written again and again."""
    hosts = [f"h{index:04}.me.localhost" for index in range(1000)]
    found = reported(build_ingress("", "*.me.localhost", *hosts))
    assert found == [point(each) for each in hosts[:MAX_REPORTED_HOSTS]]


def test_ingress_of_another_class_is_not_ours() -> None:
    assert build_ingress("a.me.localhost").is_ours
    assert not build_ingress("a.me.localhost", ingressClassName="fast").is_ours


def test_port_of_an_address() -> None:
    assert port_of("127.0.0.1:8080") == 8080
    assert port_of("[::1]:80") == 80
