"""The syntax of HTTP/1.1 responses: the head, and where the body ends. Pure: bytes in, bytes out."""

from __future__ import annotations

from typing import NamedTuple

MAX_CHUNK_LINE_BYTES = 4096
_NO_BODY = (204, 304)


class HttpSyntaxError(ConnectionError):
    """The response is not HTTP/1.1, or larger than is accepted."""


class ResponseHead(NamedTuple):
    status: int
    headers: dict[bytes, bytes] = {}  # noqa: RUF012  (never changed)
    """By lower-case name; the values of a repeated one are joined by commas."""
    http_1_0: bool = False

    @property
    def keep_alive(self) -> bool:
        """Whether the server reads another request from this connection."""
        connection = self.headers.get(b"connection", b"").lower()
        return b"keep-alive" in connection if self.http_1_0 else b"close" not in connection

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")


def parse_head(head: bytes) -> ResponseHead:
    """Parses the status line and the headers, without the empty line after them."""
    status_line, *lines = head.split(b"\r\n")
    version, _, rest = status_line.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit() or rest[3:4] not in (b"", b" "):
        raise HttpSyntaxError("the response is not HTTP/1.1")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise HttpSyntaxError("the response has an invalid header")
        name, value = name.lower(), value.strip()
        headers[name] = headers[name] + b", " + value if name in headers else value
    return ResponseHead(int(code), headers, version == b"HTTP/1.0")


class BodyDecoder:
    """Removes the framing of one response body: chunks, a length, or the end of the connection."""

    def __init__(self, head: ResponseHead | None) -> None:
        self.complete = head is None or head.status in _NO_BODY or head.status < 200
        self._chunked = False
        self._until_closed = False
        self._left = 0
        """Bytes of the body, or of the present chunk, that are still to come."""
        self._rest = b""
        """The beginning of a line between two chunks."""
        self._after_chunk = False
        """Whether the next line is the line break that ends a chunk."""
        self._in_trailers = False
        if head is None or self.complete:
            return
        if encoding := head.headers.get(b"transfer-encoding"):
            if encoding.lower() != b"chunked":
                raise HttpSyntaxError("the response has an unknown transfer encoding")
            self._chunked = True
        elif (length := head.headers.get(b"content-length")) is not None:
            self._left = _parse_length(length)
            self.complete = not self._left
        else:
            self._until_closed = True

    def feed(self, data: bytes) -> bytes:
        """Returns the part of the body in the next bytes of the connection."""
        if self.complete:
            raise HttpSyntaxError("the server sent more than one response")
        if self._chunked:
            return self._feed_chunks(data)
        if self._until_closed:
            return data
        if len(data) > self._left:
            raise HttpSyntaxError("the server sent more than one response")
        self._left -= len(data)
        self.complete = not self._left
        return data

    def finish(self) -> None:
        """Takes note of the end of the connection."""
        self.complete = self.complete or self._until_closed

    def _feed_chunks(self, data: bytes) -> bytes:
        if len(data) <= self._left:
            # The middle of a large chunk: nothing to cut.
            self._left -= len(data)
            return data
        parts: list[bytes] = []
        data, self._rest = self._rest + data, b""
        position = 0
        while position < len(data):
            if self._left:
                part = data[position : position + self._left]
                parts.append(part)
                position += len(part)
                self._left -= len(part)
                continue
            end = data.find(b"\r\n", position)
            if end < 0 or end - position > MAX_CHUNK_LINE_BYTES:
                self._rest = data[position:]
                if len(self._rest) > MAX_CHUNK_LINE_BYTES:
                    raise HttpSyntaxError("the response has an overlong line between two chunks")
                break
            line, position = data[position:end], end + 2
            self._read_line(line)
            if self.complete:
                if position < len(data):
                    raise HttpSyntaxError("the server sent more than one response")
                break
        return b"".join(parts)

    def _read_line(self, line: bytes) -> None:
        """Takes in the line break after a chunk, the size of the next one, or a trailer."""
        if self._in_trailers:
            self.complete = not line
        elif self._after_chunk:
            if line:
                raise HttpSyntaxError("a chunk of the response is longer than its size")
            self._after_chunk = False
        else:
            self._left = _parse_chunk_size(line)
            self._in_trailers = not self._left
            self._after_chunk = True


def _parse_length(text: bytes) -> int:
    # Equal repeated values are allowed, different ones are not.
    values = {each.strip() for each in text.split(b",")}
    value = values.pop()
    if values or not value.isdigit() or len(value) > 18:
        raise HttpSyntaxError("the response has an invalid Content-Length")
    return int(value)


def _parse_chunk_size(line: bytes) -> int:
    size = line.partition(b";")[0].strip()
    if not size or len(size) > 15 or size.strip(b"0123456789abcdefABCDEF"):
        raise HttpSyntaxError("the response has an invalid chunk size")
    return int(size, 16)
