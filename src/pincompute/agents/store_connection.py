"""Persistent connection of a pod or node to a store of the platform. It uses only the standard library."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from pincompute.api.names import SYSTEM_NAMESPACE

TIMEOUT_S = 20.0


class StoreUnavailable(Exception):  # noqa: N818  (named by what happened)
    """The store cannot be reached, or failed to process the request."""


class ClientCredentials(Protocol):
    """Certificate and trusted roots of a client, in files that other processes renew."""

    def ssl_context(self) -> ssl.SSLContext: ...

    def modified_at(self) -> float:
        """Time of the last renewal."""
        ...

    def verify_server(self, certificate: dict[str, Any]) -> None:
        """Raises StoreUnavailable if the server is not the store."""
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
    """Credentials of a pod: its identity. The store's certificate has a SPIFFE ID of the same trust domain."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = store
        """Name of the store, such as log-store."""

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
        suffix = f"/{SYSTEM_NAMESPACE}/{self._store}"
        if len(names) != 1 or not names[0].startswith("spiffe://") or not names[0].endswith(suffix):
            raise StoreUnavailable(f"the server is not the {self._store}: {', '.join(names) or 'no SPIFFE ID'}")


class StoreConnection:
    """One connection, opened again with the present certificate after each renewal and each failure."""

    def __init__(
        self,
        address: str,
        credentials: ClientCredentials,
        timeout_s: float = TIMEOUT_S,
        max_body_bytes: int | None = None,
    ) -> None:
        """Of a longer body the rest is dropped; None for no limit."""
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._address = urlsplit(address).netloc
        self._credentials = credentials
        self._connection: http.client.HTTPSConnection | None = None
        self._credentials_used = 0.0

    def send(self, method: str, target: str, body: bytes | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body of the response."""
        try:
            connection = self._connect()
            connection.request(method, target, body)
            response = connection.getresponse()
            answer = response.read(self._max_body_bytes)
            # Only when it is read to its end, the connection can be used again.
            response.read()
            return response.status, response.headers, answer
        except StoreUnavailable:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise StoreUnavailable(str(error) or type(error).__name__) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPSConnection:
        modified_at = self._credentials.modified_at()
        if modified_at != self._credentials_used:
            # An open connection still uses the previous certificate.
            self.close()
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._address, timeout=self._timeout_s, context=self._credentials.ssl_context()
            )
            self._credentials_used = modified_at
        if self._connection.sock is None:
            self._connection.connect()
            assert isinstance(self._connection.sock, ssl.SSLSocket)
            self._credentials.verify_server(self._connection.sock.getpeercert() or {})
        return self._connection
