"""HTTP/1.1 client for one server, for requests and streams, on the standard library alone.

The responses are parsed by hand to keep `pin get` fast: importing `h11` added 13 ms to the 100 ms that a command takes
to load (median of 20 runs), and aiohttp adds more than 100 ms. The parser accepts less than they do, and reports
anything unexpected as a `TransportError`. WebSockets need aiohttp, which only `pin shell` and `pin port-forward` load.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from math import inf
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from pincompute import __version__

CONNECT_TIMEOUT_S = 5.0
READ_SIZE_BYTES = 1 << 18
"""Largest piece of a body that is read at once, and largest response head."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_STATUSES_WITHOUT_BODY = (204, 304)


class TransportError(Exception):
    """The server cannot be reached, the connection broke, or the response is not HTTP/1.1."""


class Connection(NamedTuple):
    """One TCP or TLS connection, kept alive for several requests, one at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def abort(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


class HttpResponse:
    """Status and headers of a response; its body can be read once, whole or in chunks."""

    def __init__(self, connection: Connection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        """By lower-case name."""
        self.connection = connection
        self._at_end = False
        self._chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._unread_bytes = _body_length(status, headers) if not self._chunked else 0

    @property
    def is_reusable(self) -> bool:
        """Whether its connection can carry another request: the body is read, and the server keeps it open."""
        return self._at_end and self._unread_bytes == 0 and self.headers.get("connection", "").lower() != "close"

    @property
    def is_short(self) -> bool:
        """Whether the rest of the body is known to be small."""
        return not self._chunked and self._unread_bytes <= READ_SIZE_BYTES

    async def read(self) -> bytes:
        chunks: list[bytes] = []
        while chunk := await self.read_chunk():
            chunks.append(chunk)
        return b"".join(chunks)

    async def read_chunk(self) -> bytes:
        """Return the next bytes of the body as soon as there are any; empty at its end."""
        if self._at_end:
            return b""
        with _as_transport_errors():
            if self._chunked and not self._unread_bytes:
                self._unread_bytes = await self._read_chunk_size()
            chunk = await self.connection.reader.read(int(min(self._unread_bytes, READ_SIZE_BYTES)))
            if not chunk and self._unread_bytes not in {0, inf}:
                raise EOFError("connection closed in the middle of a response")
            self._at_end = not chunk
            self._unread_bytes -= len(chunk)
            if self._chunked and chunk and not self._unread_bytes:
                await self.connection.reader.readexactly(2)
        return chunk

    async def _read_chunk_size(self) -> int:
        reader = self.connection.reader
        size = _parse_length((await reader.readuntil(b"\n")).partition(b";")[0], 16)
        while not size and (await reader.readuntil(b"\n")).strip():
            # Trailers follow the last chunk; none is used.
            pass
        return size


def _body_length(status: int, headers: Mapping[str, str]) -> float:
    """Length in bytes; infinite for a body that ends with its connection."""
    if status in _STATUSES_WITHOUT_BODY:
        return 0
    return _parse_length(headers["content-length"]) if "content-length" in headers else inf


def _parse_length(text: str | bytes, base: int = 10) -> int:
    if (length := int(text, base)) < 0:
        raise ValueError(f"a length must not be negative: {length}")
    return length


class HttpClient:
    """Client of one server, with connections kept alive.

    A request is sent again on a new connection where the server has closed the old one, so each must be safe to
    repeat: a read, or a write with an idempotency key.
    """

    def __init__(self, address: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None) -> None:
        """Trust the system's certificate authorities, unless `tls` says otherwise."""
        url = urlsplit(address)
        self._host = url.hostname or ""
        self._tls = (tls or ssl.create_default_context()) if url.scheme == "https" else None
        self._port = url.port or (443 if self._tls else 80)
        self._path = url.path.rstrip("/")
        self._headers = {
            "Host": url.netloc.rpartition("@")[2],
            "User-Agent": f"pin/{__version__}",
            "Accept": "*/*",
            **headers,
        }
        self._idle_connections: list[Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._idle_connections:
            await connection.abort()

    async def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS
    ) -> HttpResponse:
        """Return once the head of the response is there. The caller releases or discards the response."""
        request = self._encode_request(method, path, body, headers)
        with _as_transport_errors():
            while self._idle_connections:
                connection = self._idle_connections.pop()
                # A server may close an idle connection at any time.
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    return await _round_trip(connection, request)
            return await _round_trip(await self._open_connection(), request)

    async def discard(self, response: HttpResponse) -> None:
        """Release an unwanted response. A short rest is read first, which is cheaper than a new connection."""
        try:
            if response.is_short:
                with suppress(TransportError):
                    await response.read()
        finally:
            await self.release(response)

    async def release(self, response: HttpResponse) -> None:
        if response.is_reusable:
            self._idle_connections.append(response.connection)
        else:
            await response.connection.abort()

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS
    ) -> AsyncIterator[HttpResponse]:
        response = await self.send(method, path, body, headers)
        try:
            yield response
        finally:
            await self.release(response)

    def _encode_request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        lines = [f"{method} {self._path}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**self._headers, **headers}.items()]
        if body or method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        if not all(line.isprintable() for line in lines):
            raise ValueError("a header must be one line of printable text")
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body

    async def _open_connection(self) -> Connection:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return Connection(
                *await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=READ_SIZE_BYTES)
            )


async def _round_trip(connection: Connection, request: bytes) -> HttpResponse:
    try:
        # Not drained: a server that rejects a long request may respond before it has read all of it.
        connection.writer.write(request)
        version, status = "", 100
        headers: dict[str, str] = {}
        # Skips interim responses, such as 100 Continue and 103 Early Hints.
        while status < 200:
            first, *lines = (await connection.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
            version, code, *_ = first.split(" ", 2)
            if not version.startswith("HTTP/1."):
                raise ValueError(f"expected HTTP/1.1, got {version}")
            status = int(code)
            pairs = (each.partition(":") for each in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return HttpResponse(connection, status, headers)
    except BaseException:
        await connection.abort()
        raise


@contextmanager
def _as_transport_errors() -> Generator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise TransportError(str(error) or type(error).__name__) from error
