"""Readiness probes of parts. They run many times a second, so they use plain sockets instead of an HTTP client."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from pincompute.engine.parts import HttpProbe, NoProbe, ReadinessProbe, SocketProbe

PROBE_TIMEOUT_S = 2.0


def is_ready(ready: ReadinessProbe, certificates: Path) -> bool:
    match ready:
        case NoProbe():
            return True
        case SocketProbe():
            return _accepts_connections(ready)
        case HttpProbe():
            return _answers_200(ready, certificates)


def listen_address(ready: ReadinessProbe) -> tuple[str, int] | None:
    """TCP address and port of a probe, None for others."""
    match ready:
        case HttpProbe(url=url):
            parsed = urlsplit(url)
            return parsed.hostname or "", parsed.port or 0
        case SocketProbe(address=address, port=port) if port:
            return address, port
        case _:
            return None


def _accepts_connections(ready: SocketProbe) -> bool:
    family = socket.AF_INET if ready.path is None else socket.AF_UNIX
    target = (ready.address, ready.port) if ready.path is None else str(ready.path)
    with socket.socket(family) as connection:
        connection.settimeout(PROBE_TIMEOUT_S)
        try:
            connection.connect(target)
        except OSError:
            return False
    return True


def _answers_200(ready: HttpProbe, certificates: Path) -> bool:
    url = urlsplit(ready.url)
    connection = _connection(url.scheme, url.netloc, ready.client_certificate, certificates / ready.authority)
    try:
        connection.request("GET", f"{url.path}?{url.query}" if url.query else url.path or "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connection(scheme: str, host: str, client: str, certificates: Path) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, timeout=PROBE_TIMEOUT_S)
    context = ssl.create_default_context(cafile=certificates / "ca.crt")
    if client:
        context.load_cert_chain(certificates / f"{client}.crt", certificates / f"{client}.key")
    return http.client.HTTPSConnection(host, timeout=PROBE_TIMEOUT_S, context=context)
