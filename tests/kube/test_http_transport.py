"""The client's connections before servers that answer byte by byte, break off, flood, or close behind our back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from pincompute.kube import http_connection, http_pool
from pincompute.kube.access import Access
from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request
from pincompute.kube.transport import ClientLimits, HttpTransport

GET = Request("GET", "/api/v1/pods", {"labelSelector": "a in (b, c)"}, about="pods")
POST = Request("POST", "/api/v1/pods", {}, b'{"kind":"Pod"}', about="pods")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LIMITS = ClientLimits(connect_timeout_s=60, request_timeout_s=60)


class Connection:
    """One connection as the server sees it."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = server.connections
        self._server, self._reader, self.writer = server, reader, writer

    async def read_request(self) -> bytes:
        """Reads a request with its body; empty once the client has closed."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        length = next((line[16:] for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")), b"0")
        request = head + await self._reader.readexactly(int(length))
        self._server.requests.append(request)
        return request

    async def wait_closed_by_client(self) -> None:
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            pass


Behaviour = Callable[[Connection], Awaitable[None]]


class Server:
    def __init__(self) -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self.connections = 0


@asynccontextmanager
async def running_server(behaviour: Behaviour) -> AsyncGenerator[tuple[HttpTransport, Server]]:
    server = Server()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            await behaviour(Connection(server, reader, writer))
        finally:
            writer.transport.abort()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    access = Access(f"http://127.0.0.1:{server.port}/clusters/main/", token="secret")
    async with listener, HttpTransport(access, "test", LIMITS) as transport:
        yield transport, server


async def answer_all(connection: Connection) -> None:
    while await connection.read_request():
        connection.writer.write(OK)


async def answer_one(connection: Connection) -> None:
    await connection.read_request()
    connection.writer.write(OK)
    await connection.writer.drain()


async def test_request_has_path_query_and_headers() -> None:
    async with running_server(answer_all) as (transport, server):
        assert await transport.send(GET) == b"{}"
        assert await transport.send(POST) == b"{}"
    first, second = (each.decode().split("\r\n") for each in server.requests)
    assert first[0] == "GET /clusters/main/api/v1/pods?labelSelector=a+in+%28b%2C+c%29 HTTP/1.1"
    assert {f"Host: 127.0.0.1:{server.port}", "Authorization: Bearer secret", "Accept: application/json"} <= {*first}
    assert {"Content-Type: application/json", "Content-Length: 14"} <= {*second}
    assert second[-1] == '{"kind":"Pod"}'


async def test_requests_share_a_connection() -> None:
    async with running_server(answer_all) as (transport, server):
        for _ in range(5):
            await transport.send(GET)
        assert server.connections == 1
        await asyncio.gather(*(transport.send(GET) for _ in range(3)))
        assert server.connections == 3


async def test_response_byte_by_byte() -> None:
    async def trickle(connection: Connection) -> None:
        await connection.read_request()
        response = (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n"
        )
        for byte in response:
            connection.writer.write(bytes([byte]))
            await connection.writer.drain()
        await connection.wait_closed_by_client()

    async with running_server(trickle) as (transport, _):
        assert await transport.send(GET) == b"[1,2]"


@pytest.mark.parametrize("request_", [GET, POST._replace(method="PUT"), POST._replace(method="DELETE")])
async def test_repeats_on_a_new_connection_what_an_idle_one_lost(request_: Request) -> None:
    """A server closes an idle connection when it likes, also while a request is on its way."""

    async def drop_second(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(OK)
        if connection.number == 1:
            await connection.read_request()
            return
        await connection.wait_closed_by_client()

    async with running_server(drop_second) as (transport, server):
        assert [await transport.send(request_) for _ in range(2)] == [b"{}", b"{}"]
        assert (server.connections, len(server.requests)) == (2, 3)


async def test_does_not_repeat_a_create_that_an_idle_connection_lost() -> None:
    async def drop_second(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(OK)
        await connection.read_request()

    async with running_server(drop_second) as (transport, server):
        await transport.send(POST)
        with pytest.raises(Unreachable, match="was lost: the server closed the connection"):
            await transport.send(POST)
        assert len(server.requests) == 2


async def test_does_not_repeat_what_a_new_connection_lost() -> None:
    async def drop(connection: Connection) -> None:
        await connection.read_request()

    async with running_server(drop) as (transport, server):
        with pytest.raises(Unreachable, match="was lost"):
            await transport.send(GET)
        assert len(server.requests) == 1


async def test_uses_no_connection_that_the_server_has_closed() -> None:
    async with running_server(answer_one) as (transport, server):
        for count in (1, 2, 3):
            await transport.send(POST)
            ((connection, *_),) = transport._pool._idle[-1:] or ((None,),)  # noqa: SLF001
            while connection is not None and connection.reusable:  # noqa: ASYNC110  (a private state)
                await asyncio.sleep(0)
            assert server.connections == count


async def test_closes_connections_that_were_idle_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "MAX_IDLE_S", -1.0)
    async with running_server(answer_all) as (transport, server):
        for _ in range(2):
            await transport.send(GET)
        assert server.connections == 2


async def test_connections_of_a_burst_are_closed_later() -> None:
    async with running_server(answer_all) as (transport, server):
        await asyncio.gather(*(transport.send(GET) for _ in range(5)))
        idle = transport._pool._idle  # noqa: SLF001
        assert (server.connections, len(idle)) == (5, 5)
        idle[:-1] = [(connection, context, since - 3600) for connection, context, since in idle[:-1]]
        await transport.send(GET)
        assert (server.connections, len(idle)) == (5, 1)


async def test_cancelled_request_closes_its_connection() -> None:
    """The rest of its response would otherwise be read as the answer to the next request."""
    closed, begun = asyncio.Event(), asyncio.Event()

    async def stall(connection: Connection) -> None:
        await connection.read_request()
        if connection.number > 1:
            connection.writer.write(OK)
            await connection.wait_closed_by_client()
            return
        connection.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1,")
        begun.set()
        await connection.wait_closed_by_client()
        closed.set()

    async with running_server(stall) as (transport, _), asyncio.timeout(60):
        task = asyncio.create_task(transport.send(GET))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        await closed.wait()
        assert await transport.send(GET) == b"{}"


async def test_stream_that_is_left_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def stream(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na\nb\n\r\n")
        await connection.wait_closed_by_client()
        closed.set()

    async with running_server(stream) as (transport, _), asyncio.timeout(60):
        async with aclosing(transport.lines(GET, silence=60)) as lines:
            assert await anext(lines) == b"a"
        await closed.wait()


async def test_stream_ends_with_its_last_line_and_keeps_the_connection() -> None:
    async def stream(connection: Connection) -> None:
        while await connection.read_request():
            connection.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na\n\nbc")

    async with running_server(stream) as (transport, server):
        for _ in range(2):
            async with aclosing(transport.lines(GET, silence=60)) as lines:
                assert [each async for each in lines] == [b"a", b"", b"bc"]
        assert server.connections == 1


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1,", "the response was truncated"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n[1,", "the response was truncated"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "the response was truncated"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "the response is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "invalid Content-Length"),
        (OK + OK, "more than one response"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "the head of the response is larger than 65536 bytes"),
    ],
)
async def test_broken_response_is_a_lost_connection(response: bytes, why: str) -> None:
    async def send(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(response)
        await connection.writer.drain()
        connection.writer.write_eof()
        await connection.wait_closed_by_client()

    async with running_server(send) as (transport, _):
        with pytest.raises(Unreachable, match=why):
            await transport.send(GET)


async def test_body_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MAX_BODY_BYTES", 100_000)

    async def flood(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                connection.writer.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
                await connection.writer.drain()
        except ConnectionError:
            pass

    async with running_server(flood) as (transport, _):
        with pytest.raises(Unreachable, match="larger than 100000 bytes"):
            await transport.send(GET)


async def test_server_waits_for_a_slow_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MAX_UNREAD_BYTES", 1000)
    lines_sent = 3000

    async def stream(connection: Connection) -> None:
        await connection.read_request()
        connection.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(lines_sent):
            connection.writer.write(b"64\r\n" + b"x" * 99 + b"\n\r\n")
            await connection.writer.drain()
        connection.writer.write(b"0\r\n\r\n")
        await connection.wait_closed_by_client()

    async with running_server(stream) as (transport, _), aclosing(transport.lines(GET, silence=60)) as lines:
        count = 0
        async for line in lines:
            assert line == b"x" * 99
            count += 1
            (connection,) = transport._pool._open  # noqa: SLF001
            # One read of the socket at most is beyond the bound.
            assert connection._unread_bytes <= 1000 + 2**18  # noqa: SLF001
            await asyncio.sleep(0)
        assert count == lines_sent


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a\nb", "/ä", "/\x00"])
async def test_path_cannot_smuggle_a_request(path: str) -> None:
    async with running_server(answer_all) as (transport, server):
        with pytest.raises(ApiError, match="invalid path or token"):
            await transport.send(GET._replace(path=path))
        assert server.requests == []


async def test_refused_connection_is_named() -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    async with HttpTransport(Access(f"http://127.0.0.1:{port}"), "test", LIMITS) as transport:
        with pytest.raises(Unreachable, match="connection refused"):
            await transport.send(GET)


@pytest.mark.parametrize("server", ["http://", "http://127.0.0.1:99999", "nonsense"])
async def test_invalid_address_is_unreachable(server: str) -> None:
    async with HttpTransport(Access(server), "test", LIMITS) as transport:
        with pytest.raises(Unreachable):
            await transport.send(GET)
