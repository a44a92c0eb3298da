"""Brings batches to the store, by nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

from pincompute.agents.logs.place import Batch, Position, Stream

PATIENCE = 20.0
STORED, OUT_OF_STEP, TOO_EARLY = 200, 409, 425
_STORE = "/pincompute-system/log-store"


class Away(Exception):  # noqa: N818  (it reads as what happened)
    """The store cannot be asked now."""


class Later(Exception):  # noqa: N818
    """The store does not know this pod yet."""


class Unwanted(Exception):  # noqa: N818
    """The store will never take this stream from us."""


class Shown(Protocol):
    """Who we are, and whom we trust: files that others renew."""

    def context(self) -> ssl.SSLContext: ...

    def written(self) -> float:
        """When they were last renewed."""
        ...

    def check(self, certificate: dict[str, Any]) -> None:
        """Away, where somebody else answers."""
        ...


class Papers(NamedTuple):
    """Whom to trust, and who we are: files that others renew."""

    trust: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.trust)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def written(self) -> float:
        return max(each.stat().st_mtime for each in self)

    def check(self, certificate: dict[str, Any]) -> None:
        """The host's name was."""


class Identity:
    """Its pod's own certificate; the store has one of the same trust domain, in which its name is not a host's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.load_verify_locations(self._folder / "trust.pem")
        context.load_cert_chain(self._folder / "identity.pem")
        return context

    def written(self) -> float:
        return max((self._folder / each).stat().st_mtime for each in ("trust.pem", "identity.pem"))

    def check(self, certificate: dict[str, Any]) -> None:
        """Before a byte is sent: anybody in the trust domain could answer at the address."""
        names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
        if len(names) != 1 or not names[0].startswith("spiffe://") or not names[0].endswith(_STORE):
            raise Away(f"it is not the store that answers, but {', '.join(names) or 'nobody with a name'}")


class Courier:
    """One connection, kept for as long as it lasts."""

    def __init__(self, address: str, papers: Shown) -> None:
        self._address = urlsplit(address).netloc
        self._papers = papers
        self._line: http.client.HTTPSConnection | None = None
        self._shown = 0.0

    def position(self, stream: Stream) -> Position:
        """How far the store has it."""
        status, body = self._ask("GET", "/v1/positions", _named(stream))
        return _answered(status, body)[1]

    def bring(self, batch: Batch) -> tuple[bool, Position]:
        """Whether it was stored, or the store was not where it begins; and where the store is now."""
        named = {
            **_named(batch.stream),
            "segment": batch.end.segment,
            "start": batch.start.offset,
            "end": batch.end.offset,
            "mark": batch.end.mark,
        }
        status, body = self._ask("POST", "/v1/batches", named, batch.lines)
        return _answered(status, body)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _ask(self, method: str, path: str, named: dict[str, object], body: bytes | None = None) -> tuple[int, bytes]:
        try:
            line = self._connected()
            line.request(method, f"{path}?{urlencode(named)}", body)
            answer = line.getresponse()
            return answer.status, answer.read()
        except Away:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Away(str(error) or type(error).__name__) from error

    def _connected(self) -> http.client.HTTPSConnection:
        written = self._papers.written()
        if written != self._shown:
            # A connection shows what was valid when it began.
            self.close()
        if self._line is None:
            self._line = http.client.HTTPSConnection(self._address, timeout=PATIENCE, context=self._papers.context())
            self._shown = written
        if self._line.sock is None:
            self._line.connect()
            assert isinstance(self._line.sock, ssl.SSLSocket)
            self._papers.check(self._line.sock.getpeercert() or {})
        return self._line


def _named(stream: Stream) -> dict[str, object]:
    return dict(stream._asdict())


def _answered(status: int, body: bytes) -> tuple[bool, Position]:
    if status in (STORED, OUT_OF_STEP):
        known = json.loads(body)
        return status == STORED, Position(known["segment"], known["offset"], known["mark"])
    said = body.decode("utf-8", "replace").strip()
    if status == TOO_EARLY:
        raise Later(said)
    if 400 <= status < 500:
        raise Unwanted(said)
    raise Away(f"the store answered {status}: {said}")
