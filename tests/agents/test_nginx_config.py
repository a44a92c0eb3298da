"""nginx configuration: the whole text, and quoting of values that could break it."""

from __future__ import annotations

from pathlib import Path

from pincompute.agents.nginx_config import nginx_config
from pincompute.agents.routes import Route

GOLDEN = Path(__file__).parent / "nginx.conf"

ROUTES = (
    Route(
        "hello.me.localhost",
        "/",
        service="me/hello",
        address="10.203.0.7",
        port=80,
        endpoints=(("10.1.0.3", 8080), ("fd00::9", 9090)),
    ),
    Route("shop.me.localhost", "/cart", service="me/cart", address="10.203.0.8", port=8080),
    Route("shop.me.localhost", "/cart", True, service="me/front", address="10.203.0.9", port=80),
    Route("shop.me.localhost", "/pay", service="me/pay", fault="no such service: me/pay"),
    Route("*.wild.localhost", "/", service="me/wild", address="fd00::7", port=80),
)


def config(*routes: Route, **more: str) -> str:
    return nginx_config(routes, "127.0.0.1:8080", Path("/folder"), **more)


def test_whole_configuration() -> None:
    assert config(*ROUTES, user="nobody nogroup") == GOLDEN.read_text()


def test_order_of_routes_does_not_matter() -> None:
    assert config(*reversed(ROUTES)) == config(*ROUTES)


def test_quotes_special_characters_in_path() -> None:
    assert r'location = "/a\"; } evil\\\n" {' in config(Route("w", '/a"; } evil\\\n', True, fault="none"))


def test_route_without_host_replaces_list_of_hosts() -> None:
    text = config(Route("", "/", service="me/web", address="10.0.0.1", port=80))
    assert "return 404" not in text
    assert 'location = "/healthz" {' in text


def test_list_of_hosts_is_bounded() -> None:
    hosts = [f"a-host-with-quite-a-long-name-{number:05}.me.localhost" for number in range(1000)]
    text = config(*(Route(host, "/", fault="none") for host in hosts))
    assert max(len(line) for line in text.splitlines()) < 4000
    assert f"http://{hosts[0]}:8080" in text
    assert " more\\n" in text


def test_page_without_any_host() -> None:
    assert "no Ingress has a host yet" in config()
