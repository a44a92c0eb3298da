"""nginx configuration: the whole text, and quoting of values that could break it."""

from __future__ import annotations

from pathlib import Path

from pincompute.agents.nginx_config import Certificate, Https, nginx_config
from pincompute.agents.routes import Route
from pincompute.api.hosts import HostRules

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


def config(*routes: Route, user: str = "") -> str:
    return nginx_config(routes, "127.0.0.1:8080", Path("/folder"), user)


def test_whole_configuration() -> None:
    assert config(*ROUTES, user="nobody nogroup") == GOLDEN.read_text()


def test_order_of_routes_does_not_matter() -> None:
    assert config(*reversed(ROUTES)) == config(*ROUTES)


def test_quotes_special_characters_in_path() -> None:
    assert r'location = "/a\"; } evil\\\n" {' in config(Route("w", '/a"; } evil\\\n', True, fault="none"))


def test_page_of_unknown_hosts_lists_no_host() -> None:
    text = config(*(Route(host, "/", fault="none") for host in ("secret.one.localhost", "secret.two.localhost")))
    pages = [line for line in text.splitlines() if "return 404" in line]
    assert pages
    assert not any("secret" in page for page in pages)
    assert "pin get" in pages[0]


def test_host_without_route_for_path_has_a_page() -> None:
    text = config(Route("w", "/shop", service="me/web", address="10.0.0.1", port=80))
    server = text.partition('server_name "w";')[2]
    assert 'location "/" {\n            return 404 "no route for $host' in server


def test_route_without_host_replaces_page() -> None:
    text = config(Route("", "/", service="me/web", address="10.0.0.1", port=80))
    assert "return 404" not in text
    assert 'location = "/healthz" {' in text


def test_routes_for_many_hosts_get_none_of_the_platform_and_its_projects() -> None:
    rules = HostRules("corp.com", ("pin.corp.com",))
    routes = [Route("", "/", fault="all"), Route("*.ads.corp.com", "/", fault="wild")]
    text = nginx_config(routes, "127.0.0.1:8080", Path("/folder"), rules=rules)
    names = [line.split('"')[1] for line in text.splitlines() if 'server_name "' in line]
    # nginx prefers exact names, and then takes the first expression that matches.
    assert names == [r"~^[^.]+\\.ads\\.corp\\.com$", "pin.corp.com", r"~^([^.]+\\.)*corp\\.com$"]
    assert "pin.corp.com" not in nginx_config([Route("w", "/", fault="")], "a:80", Path("/folder"), rules=rules)


def test_https_serves_hosts_with_a_certificate_and_refuses_others() -> None:
    files = Certificate(Path("/web/me.crt"), Path("/web/me.key"))
    https = Https("127.0.0.1:8443", {"a.me.localhost": files})
    routes = [Route(host, "/", fault="none") for host in ("a.me.localhost", "shop.example.com")]
    text = nginx_config(routes, "127.0.0.1:8080", Path("/folder"), https=https)
    _, default, certified, other, refused = text.split("server {")
    assert "8443" not in default
    assert "8443" not in other
    assert "listen 127.0.0.1:8443 ssl;" in certified
    assert 'ssl_certificate "/web/me.crt";' in certified
    assert "listen 127.0.0.1:8443 ssl default_server;" in refused
    assert "ssl_reject_handshake on;" in refused
