"""Asking over HTTP/1.1, a question or a stream, by the standard library alone: a person waits for what is loaded."""

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

PATIENCE = 5.0
"""Seconds until a connection stands."""
PIECE = 1 << 18
_NO_MORE: Mapping[str, str] = MappingProxyType({})
_BODILESS = (204, 304)


class Unanswered(Exception):  # noqa: N818  (it reads as what happened)
    """Nobody was there, or the connection broke, or what came is not HTTP."""


class Line(NamedTuple):
    """A connection, on which one is asked after the other."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def hang_up(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


class Answer:
    """What its head says; its body is read once, whole or as it comes."""

    def __init__(self, line: Line, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        """By their names in small letters."""
        self.line = line
        self._over = False
        self._chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._left = _length(status, headers) if not self._chunked else 0

    @property
    def free(self) -> bool:
        """Its line is, for the next."""
        return self._over and self._left == 0 and self.headers.get("connection", "").lower() != "close"

    @property
    def short(self) -> bool:
        """What is left of it comes at once."""
        return not self._chunked and self._left <= PIECE

    async def read(self) -> bytes:
        pieces: list[bytes] = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """As soon as there is one; empty at the end."""
        if self._over:
            return b""
        with _told():
            if self._chunked and not self._left:
                self._left = await self._next_chunk()
            piece = await self.line.reader.read(int(min(self._left, PIECE)))
            if not piece and self._left not in {0, inf}:
                raise EOFError("it broke off")
            self._over = not piece
            self._left -= len(piece)
            if self._chunked and piece and not self._left:
                await self.line.reader.readexactly(2)
        return piece

    async def _next_chunk(self) -> int:
        reader = self.line.reader
        size = _counted((await reader.readuntil(b"\n")).partition(b";")[0], 16)
        while not size and (await reader.readuntil(b"\n")).strip():
            # What is said after all: nobody asks for it.
            pass
        return size


def _length(status: int, headers: Mapping[str, str]) -> float:
    """Of its body; without a word of that it ends with the connection."""
    if status in _BODILESS:
        return 0
    return _counted(headers["content-length"]) if "content-length" in headers else inf


def _counted(said: str | bytes, base: int = 10) -> int:
    if (count := int(said, base)) < 0:
        raise ValueError(f"{count} is no length")
    return count


class Asker:
    """Of one server. Whatever it is asked may be asked twice: it only looks, or has a key."""

    def __init__(self, address: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None) -> None:
        """By the system's authorities where `tls` says no other."""
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
        self._free: list[Line] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for line in self._free:
            await line.hang_up()

    async def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = _NO_MORE) -> Answer:
        """Its head has come; whoever has it lets go of it in the end."""
        request = self._written(method, path, body, headers)
        with _told():
            while self._free:
                line = self._free.pop()
                # A server hangs up whenever it likes on whom it has answered.
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    return await _exchanged(line, request)
            return await _exchanged(await self._connected(), request)

    async def pass_over(self, answer: Answer) -> None:
        """What it says is not wanted: hearing the rest costs both sides less than a new line."""
        try:
            if answer.short:
                with suppress(Unanswered):
                    await answer.read()
        finally:
            await self.let_go(answer)

    async def let_go(self, answer: Answer) -> None:
        if answer.free:
            self._free.append(answer.line)
        else:
            await answer.line.hang_up()

    @asynccontextmanager
    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = _NO_MORE
    ) -> AsyncIterator[Answer]:
        answer = await self.send(method, path, body, headers)
        try:
            yield answer
        finally:
            await self.let_go(answer)

    def _written(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        lines = [f"{method} {self._path}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**self._headers, **headers}.items()]
        if body or method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        if not all(line.isprintable() for line in lines):
            raise ValueError("a header must be one line of text")
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body

    async def _connected(self) -> Line:
        async with asyncio.timeout(PATIENCE):
            return Line(*await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=PIECE))


async def _exchanged(line: Line, request: bytes) -> Answer:
    try:
        # Who refuses what is long may answer before they have heard all of it.
        line.writer.write(request)
        version, status = "", 100
        headers: dict[str, str] = {}
        # Some say first that they are about to answer.
        while status < 200:
            first, *lines = (await line.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
            version, code, *_ = first.split(" ", 2)
            if not version.startswith("HTTP/1."):
                raise ValueError(f"{version} is not HTTP/1.1")
            status = int(code)
            pairs = (each.partition(":") for each in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return Answer(line, status, headers)
    except BaseException:
        await line.hang_up()
        raise


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise Unanswered(str(error) or type(error).__name__) from error
