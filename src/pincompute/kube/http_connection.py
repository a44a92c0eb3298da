"""One HTTP/1.1 connection of a client: sends a request, then reads the response to its end.

It does only what requests to an API server need: no redirects, cookies, compression or pipelining.
"""

from __future__ import annotations

import asyncio
from collections import deque

from pincompute.kube.http_framing import BodyDecoder, HttpSyntaxError, ResponseHead, parse_head

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 1 << 30
"""Of a response that is read as a whole: a page of 500 objects, each as large as etcd stores it."""
MAX_UNREAD_BYTES = 1 << 20
"""Beyond this a reader that is slower than the server stops the server."""


class ConnectionClosedError(ConnectionError):
    """The server closed the connection before its response was complete."""


class HttpConnection(asyncio.Protocol):
    """Serves one request at a time. After an error, or a body that was not read to its end, it must be aborted."""

    def __init__(self) -> None:
        self.reused = False
        """Whether it has served a request already."""
        self.answered = False
        """Whether a byte of the response to the present request has arrived."""
        self._transport: asyncio.Transport | None = None
        self._received: deque[bytes] = deque()
        self._unread_bytes = 0
        self._paused = False
        self._closed: Exception | None = None
        self._eof = False
        self._waiter: asyncio.Future[None] | None = None
        self._head = ResponseHead(0)
        self._body = BodyDecoder(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES and not self._paused and self._transport:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._eof = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._eof, self._closed = True, exc
        self._wake()

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent: the last response was complete, and the server keeps the connection."""
        clean = self._body.complete and not self._received and not self._eof
        return clean and self._head.keep_alive and self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        """Closes at once: a TLS shutdown would wait for the server's confirmation."""
        if self._transport:
            self._transport.abort()

    async def request(self, message: bytes) -> ResponseHead:
        """Sends a whole request and returns the head of the response."""
        assert self._transport is not None
        self.answered = False
        self._transport.write(message)
        head = bytearray()
        while True:
            end = head.find(b"\r\n\r\n")
            if end < 0:
                if len(head) > MAX_HEAD_BYTES:
                    raise HttpSyntaxError(f"the head of the response is larger than {MAX_HEAD_BYTES} bytes")
                if not (chunk := await self._read()):
                    raise self._closed_error()
                head += chunk
                self.answered = True
                continue
            self._head = parse_head(bytes(head[:end]))
            del head[: end + 4]
            if self._head.status >= 200 or self._head.status == 101:
                break
        self._body = BodyDecoder(self._head)
        if head:
            self._received.appendleft(bytes(head))
            self._unread_bytes += len(head)
        return self._head

    async def read_chunk(self) -> bytes:
        """The next part of the body; empty at its end."""
        while not self._body.complete:
            data = await self._read()
            if not data:
                self._body.finish()
                if not self._body.complete:
                    raise self._closed_error()
                break
            part = self._body.feed(data)
            if part:
                return part
        return b""

    async def read_body(self) -> bytes:
        """The whole body."""
        parts: list[bytes] = []
        size = 0
        while part := await self.read_chunk():
            parts.append(part)
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise HttpSyntaxError(f"the response is larger than {MAX_BODY_BYTES} bytes")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _read(self) -> bytes:
        """Whatever the server has sent; empty once the connection is closed."""
        while not self._received:
            if self._eof:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._received.popleft()
        self._unread_bytes -= len(data)
        if self._paused and self._unread_bytes <= MAX_UNREAD_BYTES // 2 and self._transport:
            self._paused = False
            self._transport.resume_reading()
        return data

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _closed_error(self) -> ConnectionError:
        if isinstance(self._closed, ConnectionError):
            return self._closed
        error = ConnectionClosedError(
            "the response was truncated" if self.answered else "the server closed the connection"
        )
        error.__cause__ = self._closed
        return error
