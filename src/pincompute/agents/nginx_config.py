"""Builds nginx's configuration from routes. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pincompute.agents.routes import Route
from pincompute.api.hosts import WILDCARD, HostRules

_NO_ROUTE = "no route for $host\nnext: pin get, which lists the addresses of your services\n"
"""Of the other routes it says nothing: they are other projects'."""


class Certificate(NamedTuple):
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


class Https(NamedTuple):
    """The address for HTTPS, and the certificates of the hosts that are served there."""

    listen: str
    certificates: Mapping[str, Certificate]


def nginx_config(  # noqa: PLR0913  (all that decides about the configuration)
    routes: Iterable[Route],
    listen: str,
    folder: Path,
    user: str = "",
    rules: HostRules = HostRules(""),  # noqa: B008  (a constant)
    *,
    https: Https | None = None,
) -> str:
    """The whole configuration file. `user` is the user of the workers if nginx is started by root."""
    routes = tuple(routes)
    by_host = {host: list(group) for host, group in groupby(sorted(routes), key=lambda route: route.host)}
    anywhere = by_host.pop("", [])
    servers = [_default_server(anywhere, listen)]
    servers += [_server(host, group, listen, https) for host, group in by_host.items()]
    if https:
        servers.append(_unknown_https_server(https))
    if any(not host or host.startswith(WILDCARD) for host in (*by_host, *(route.host for route in anywhere))):
        servers += _shields(rules, by_host, listen)
    upstreams = sorted({_upstream(route) for route in routes if not route.fault})
    return _process(folder, user) + _block("http", "\n".join([_http(folder), *upstreams, *servers]))


def _process(folder: Path, user: str) -> str:
    user_directive = f"user {user};\n" if user else ""
    return f"""\
{user_directive}daemon off;
worker_processes 1;
# Open connections, such as WebSockets, survive a reload for this long.
worker_shutdown_timeout 10m;
pid {_quoted(folder / "nginx.pid")};
error_log {_quoted(folder / "error.log")} warn;
events {{
    worker_connections 1024;
}}
"""


def _http(folder: Path) -> str:
    temporary = "\n".join(
        f"{use}_temp_path {_quoted(folder / 'temporary' / use)};"
        for use in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""\
{temporary}
log_format short '$time_iso8601 $host "$request" $status $request_time';
access_log {_quoted(folder / "access.log")} short;
default_type "text/plain; charset=utf-8";
server_tokens off;
server_names_hash_bucket_size 512;
server_names_hash_max_size 8192;
client_max_body_size 0;

# Requests and responses are streamed: nothing is buffered on disk, and events reach clients at once.
proxy_buffering off;
proxy_request_buffering off;
proxy_http_version 1.1;
proxy_connect_timeout 5s;
proxy_next_upstream_timeout 15s;
proxy_read_timeout 1h;
proxy_send_timeout 1h;
map $http_upgrade $connection_wanted {{
    default upgrade;
    "" close;
}}
proxy_set_header Host $http_host;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection $connection_wanted;
proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
proxy_set_header X-Forwarded-Host $http_host;
proxy_set_header X-Forwarded-Port $server_port;
proxy_set_header X-Forwarded-Proto $scheme;
# Only the proxy of mutual TLS sets it. nginx drops headers with underscores, which applications could take for it.
proxy_set_header Pin-Caller "";
"""


def _default_server(anywhere: list[Route], listen: str) -> str:
    """Server for unknown hosts: the health page, and routes without a host."""
    locations = _locations(anywhere)
    locations['= "/healthz"'] = 'access_log off;\nreturn 200 "ok\\n";\n'
    return _block("server", f"listen {listen} default_server;\n{_blocks(locations)}")


def _unknown_https_server(https: Https) -> str:
    """Server for handshakes with hosts that have no certificate, and for requests that name another host later."""
    body = f"listen {https.listen} ssl default_server;\nssl_reject_handshake on;\n"
    return _block("server", f"{body}{_blocks(_locations([]))}")


def _server(host: str, routes: list[Route], listen: str, https: Https | None = None) -> str:
    secure = _https_directives(https, host) if https else ""
    head = f"listen {listen};\n{secure}server_name {_server_name(host)};\n"
    return _block("server", f"{head}{_blocks(_locations(routes))}")


def _https_directives(https: Https, host: str) -> str:
    files = https.certificates.get(host)
    if files is None:
        return ""
    return f"""\
listen {https.listen} ssl;
ssl_certificate {_quoted(files.certificate)};
ssl_certificate_key {_quoted(files.key)};
ssl_protocols TLSv1.2 TLSv1.3;
"""


def _shields(rules: HostRules, by_host: Container[str], listen: str) -> list[str]:
    """Servers that keep the hosts of the platform, and of projects, from routes for many hosts.

    That of the domain comes last: nginx takes the first regular expression that matches.
    """
    servers = [_server(host, [], listen) for host in sorted({*rules.reserved}) if host not in by_host]
    if rules.domain:
        domain = rules.domain.replace(".", r"\.")
        name = _quoted(rf"~^([^.]+\.)*{domain}$")
        servers.append(_block("server", f"listen {listen};\nserver_name {name};\n{_blocks(_locations([]))}"))
    return servers


def _server_name(host: str) -> str:
    """In Kubernetes a wildcard matches one label, in nginx any number of labels; so it becomes a regular expression."""
    if not host.startswith("*."):
        return _quoted(host)
    return _quoted("~^[^.]+" + host[1:].replace(".", r"\.") + "$")


def _locations(routes: Sequence[Route]) -> dict[str, str]:
    """Blocks by location. An exact route wins over a prefix; nginx itself prefers the longest prefix."""
    found: dict[str, str] = {}
    for route in sorted(routes, key=lambda route: not route.exact):
        if route.exact or route.path != "/":
            found.setdefault(f"= {_quoted(route.path)}", _location_body(route))
        if not route.exact:
            found.setdefault(_quoted(route.path.rstrip("/") + "/"), _location_body(route))
    # Without it nginx would look for files in its folder.
    found.setdefault('"/"', f"return 404 {_quoted(_NO_ROUTE)};\n")
    if any(not route.fault for route in routes):
        found["@silent"] = 'return 502 "service $service did not answer\\n";\n'
    return found


def _upstream(route: Route) -> str:
    """Servers of a service: its address, and as backups the endpoints.

    The service's address can still lead to a pod that has just died. nginx then tries the endpoints.
    """
    lines = [f"server {_host_port(route.address, route.port)} max_fails=0;\n"]
    lines += [f"server {_host_port(*each)} max_fails=0 backup;\n" for each in route.endpoints]
    return _block(f"upstream {_upstream_name(route)}", "".join(lines))


def _upstream_name(route: Route) -> str:
    return f"{route.service.replace('/', '.')}.{route.port}"


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _location_body(route: Route) -> str:
    if route.fault:
        return f"return 503 {_quoted(route.fault + chr(10))};\n"
    return f"""\
set $service {_quoted(route.service)};
error_page 502 504 = @silent;
proxy_pass http://{_upstream_name(route)};
"""


def _quoted(word: str | Path) -> str:
    r"""Quotes one parameter for nginx, which knows the escapes \\, \" and \n."""
    escaped = str(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _blocks(blocks: dict[str, str]) -> str:
    return "".join(_block(f"location {place}", body) for place, body in blocks.items())


def _block(head: str, body: str) -> str:
    inner = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return f"{head} {{\n{inner}}}\n"
