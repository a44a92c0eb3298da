"""Client of the log store for shippers. It uses only the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

from pincompute.agents.logs.position import Batch, Position, Stream

TIMEOUT_S = 20.0
STORED, OUT_OF_SYNC, TOO_EARLY = 200, 409, 425


class StoreUnavailable(Exception):  # noqa: N818  (named by what happened)
    """The store cannot be reached, or failed to process the request."""


class PodUnknown(Exception):  # noqa: N818
    """The store does not know this pod yet."""


class StreamRejected(Exception):  # noqa: N818
    """The store will never accept this stream from this client."""


class ClientCredentials(Protocol):
    """Certificate and trusted roots of a client, in files that other processes renew."""

    def ssl_context(self) -> ssl.SSLContext: ...

    def modified_at(self) -> float:
        """Time of the last renewal."""
        ...

    def verify_server(self, certificate: dict[str, Any]) -> None:
        """Raises StoreUnavailable if the server is not the log store."""
        ...


class FileCredentials(NamedTuple):
    """Credentials of a platform process outside the cluster."""

    trust: Path
    certificate: Path
    key: Path

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.trust)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def modified_at(self) -> float:
        return max(each.stat().st_mtime for each in self)

    def verify_server(self, certificate: dict[str, Any]) -> None:
        """The TLS handshake has verified the host name already."""


class IdentityCredentials:
    """Credentials of a pod: its identity. The server's certificate has a SPIFFE ID of the same trust domain."""

    def __init__(self, folder: Path, server: str = "log-store") -> None:
        self._folder = folder
        self._server = server

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.load_verify_locations(self._folder / "trust.pem")
        context.load_cert_chain(self._folder / "identity.pem")
        return context

    def modified_at(self) -> float:
        return max((self._folder / each).stat().st_mtime for each in ("trust.pem", "identity.pem"))

    def verify_server(self, certificate: dict[str, Any]) -> None:
        """Checks the SPIFFE ID before a byte is sent: any pod of the trust domain could serve this address."""
        names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
        expected = f"/pincompute-system/{self._server}"
        if len(names) != 1 or not names[0].startswith("spiffe://") or not names[0].endswith(expected):
            raise StoreUnavailable(f"the server is not the {self._server}: {', '.join(names) or 'no SPIFFE ID'}")


class StoreClient:
    """Client with one persistent connection."""

    def __init__(self, address: str, credentials: ClientCredentials) -> None:
        self._address = urlsplit(address).netloc
        self._credentials = credentials
        self._connection: http.client.HTTPSConnection | None = None
        self._credentials_used = 0.0

    def fetch_position(self, stream: Stream) -> Position:
        """Position up to which the store has the stream."""
        status, body = self._send("GET", "/v1/positions", dict(stream._asdict()))
        return _parse_response(status, body)[1]

    def send_batch(self, batch: Batch) -> tuple[bool, Position]:
        """Sends a batch. Returns whether it was stored, and the store's position.

        It is not stored if it does not start at the store's position.
        """
        query: dict[str, object] = {
            **batch.stream._asdict(),
            "segment": batch.end.segment,
            "start": batch.start.offset,
            "end": batch.end.offset,
            "mark": batch.end.mark,
        }
        status, body = self._send("POST", "/v1/batches", query, batch.lines)
        return _parse_response(status, body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, query: dict[str, object], body: bytes | None = None) -> tuple[int, bytes]:
        try:
            connection = self._connect()
            connection.request(method, f"{path}?{urlencode(query)}", body)
            response = connection.getresponse()
            return response.status, response.read()
        except StoreUnavailable:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise StoreUnavailable(str(error) or type(error).__name__) from error

    def _connect(self) -> http.client.HTTPSConnection:
        modified_at = self._credentials.modified_at()
        if modified_at != self._credentials_used:
            # An open connection still uses the previous certificate.
            self.close()
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._address, timeout=TIMEOUT_S, context=self._credentials.ssl_context()
            )
            self._credentials_used = modified_at
        if self._connection.sock is None:
            self._connection.connect()
            assert isinstance(self._connection.sock, ssl.SSLSocket)
            self._credentials.verify_server(self._connection.sock.getpeercert() or {})
        return self._connection


def _parse_response(status: int, body: bytes) -> tuple[bool, Position]:
    if status in (STORED, OUT_OF_SYNC):
        known = json.loads(body)
        return status == STORED, Position(known["segment"], known["offset"], known["mark"])
    message = body.decode("utf-8", "replace").strip()
    if status == TOO_EARLY:
        raise PodUnknown(message)
    if 400 <= status < 500:
        raise StreamRejected(message)
    raise StoreUnavailable(f"the store returned {status}: {message}")
