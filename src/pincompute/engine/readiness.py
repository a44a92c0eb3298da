"""Does a part answer? Asked many times a second, so with nothing but sockets."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from pincompute.engine.parts import Alive, Ready, Socket, Web

TIMEOUT = 2.0


def answers(ready: Ready, certificates: Path) -> bool:
    match ready:
        case Alive():
            return True
        case Socket():
            return _accepts(ready)
        case Web():
            return _serves(ready, certificates)


def place(ready: Ready) -> tuple[str, int] | None:
    """The address and port that it listens on, if any."""
    match ready:
        case Web(url=url):
            parsed = urlsplit(url)
            return parsed.hostname or "", parsed.port or 0
        case Socket(address=address, port=port) if port:
            return address, port
        case _:
            return None


def _accepts(ready: Socket) -> bool:
    family = socket.AF_INET if ready.path is None else socket.AF_UNIX
    target = (ready.address, ready.port) if ready.path is None else str(ready.path)
    with socket.socket(family) as connection:
        connection.settimeout(TIMEOUT)
        try:
            connection.connect(target)
        except OSError:
            return False
    return True


def _serves(ready: Web, certificates: Path) -> bool:
    url = urlsplit(ready.url)
    connection = _connection(url.scheme, url.netloc, ready.client, certificates)
    try:
        connection.request("GET", f"{url.path}?{url.query}" if url.query else url.path or "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connection(scheme: str, place: str, client: str, certificates: Path) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(place, timeout=TIMEOUT)
    context = ssl.create_default_context(cafile=certificates / "ca.crt")
    if client:
        context.load_cert_chain(certificates / f"{client}.crt", certificates / f"{client}.key")
    return http.client.HTTPSConnection(place, timeout=TIMEOUT, context=context)
