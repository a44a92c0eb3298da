"""The HTTP/1.1 client: valid and broken responses, reused connections, request headers and TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context
from pincompute.cli.http_client import HttpClient, TransportError
from pincompute.cli.tls_context import desk_tls_context

HOST = "127.0.0.1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSE = b""


class ScriptedServer:
    """Answers requests with prepared bytes, or closes the connection, and records the requests."""

    def __init__(self, *responses: bytes) -> None:
        self.address = ""
        self.connections: list[list[bytes]] = []
        """The requests of each connection."""
        self._responses = list(responses)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests: list[bytes] = []
        self.connections.append(requests)
        try:
            while self._responses:
                head = await reader.readuntil(b"\r\n\r\n")
                _, has_body, length = head.partition(b"Content-Length: ")
                requests.append(head + await reader.readexactly(int(length.split()[0]) if has_body else 0))
                response = self._responses.pop(0)
                if response == CLOSE:
                    break
                # Byte by byte, so that the client sees every possible boundary.
                for byte in response:
                    writer.write(bytes([byte]))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*responses: bytes, context: ssl.SSLContext | None = None) -> AsyncGenerator[ScriptedServer]:
    scripted = ScriptedServer(*responses)
    server = await asyncio.start_server(scripted.serve, HOST, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    scripted.address = f"{'https' if context else 'http'}://{HOST}:{port}/"
    async with server:
        yield scripted


async def fetch(client: HttpClient, *, method: str = "GET", path: str = "/v1/whoami", body: bytes = b"") -> bytes:
    async with client.request(method, path, body) as response:
        return await response.read()


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200\r\ncontent-length:2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (CHUNKED + b"3\r\none\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\n", b"one0123456789"),
        (CHUNKED + b"1\r\na\r\n0\r\nLast: word\r\nAnd: another\r\n\r\n", b"a"),
    ],
)
async def test_reads_response_to_its_end_and_reuses_connection(response: bytes, body: bytes) -> None:
    async with serving(response, OK) as server, HttpClient(server.address, {}) as client:
        assert await fetch(client) == body
        assert await fetch(client) == b"ok"
    assert [len(each) for each in server.connections] == [2]


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nonce",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nonce",
    ],
)
async def test_does_not_reuse_connection_that_server_closes(response: bytes) -> None:
    async with serving(response, OK) as server, HttpClient(server.address, {}) as client:
        assert [await fetch(client), await fetch(client)] == [b"once", b"ok"]
    assert [len(each) for each in server.connections] == [1, 1]


async def test_response_may_end_with_its_connection() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\nuntil close") as server, HttpClient(server.address, {}) as client:
        assert await fetch(client) == b"until close"


async def test_resends_request_after_idle_connection_was_closed() -> None:
    async with serving(OK, CLOSE, OK) as server, HttpClient(server.address, {}) as client:
        assert [await fetch(client), await fetch(client, body=b"once more")] == [b"ok", b"ok"]
    first, second = server.connections
    # The same request again, on a new connection.
    assert first[1:] == second
    assert first[1].endswith(b"once more")


async def test_discard_reads_short_response_and_reuses_connection() -> None:
    async with serving(OK, OK) as server, HttpClient(server.address, {}) as client:
        await client.discard(await client.send("GET", "/"))
        assert await fetch(client) == b"ok"
    assert [len(each) for each in server.connections] == [2]


async def test_cancelled_read_does_not_wait_for_rest_of_response() -> None:
    begun = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.removesuffix(b"ok"))
        await reader.read()
        writer.close()

    async def read_response() -> None:
        async with client.request("GET", "/") as response:
            begun.set()
            await response.read()

    server = await asyncio.start_server(serve, HOST, 0)
    address = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/"
    async with server, HttpClient(address, {}) as client:
        reading = asyncio.ensure_future(read_response())
        await begun.wait()
        reading.cancel()
        await asyncio.wait([reading], timeout=60)
    assert reading.cancelled()


async def test_closes_connection_of_unfinished_response() -> None:
    async with serving(CHUNKED + b"2\r\nab\r\n", OK) as server, HttpClient(server.address, {}) as client:
        async with client.request("GET", "/") as response:
            assert await response.read_chunk() in {b"a", b"ab"}
        assert await fetch(client) == b"ok"
    assert [len(each) for each in server.connections] == [1, 1]


@pytest.mark.parametrize(
    "response",
    [
        CLOSE,
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nnot all",
        CHUNKED + b"5\r\nab",
        CHUNKED + b"2\r\nab\r\n",
        CHUNKED + b"x\r\nab\r\n",
        CHUNKED + b"-2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        b"HTTP/2 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 " + b"x" * (1 << 20) + b"\r\n\r\n",
    ],
)
async def test_incomplete_or_invalid_response_is_a_transport_error(response: bytes) -> None:
    async with serving(response) as server, HttpClient(server.address, {}) as client:
        with pytest.raises(TransportError):
            await fetch(client)


async def test_refused_connection_is_a_transport_error() -> None:
    async with serving() as server:
        pass
    async with HttpClient(server.address, {}) as client:
        with pytest.raises(TransportError):
            await fetch(client)


async def test_encodes_request_with_headers_and_body() -> None:
    async with serving(OK) as server, HttpClient(f"{server.address}base/", {"Authorization": "Bearer t"}) as client:
        await fetch(client, method="POST", path="/v1/x?y=%0D", body=b"a\r\nb")
    head, _, body = server.connections[0][0].partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "POST /base/v1/x?y=%0D HTTP/1.1"
    assert {"Authorization: Bearer t", "Content-Length: 4", f"Host: {server.address[7:-1]}"} <= set(headers)
    assert body == b"a\r\nb"


@pytest.mark.parametrize("value", ["t\r\nX-Administers: yes", "t\n", "t\0"])
async def test_rejects_header_with_line_break(value: str) -> None:
    async with serving(OK) as server, HttpClient(server.address, {"Authorization": value}) as client:
        with pytest.raises(ValueError, match="one line"):
            await fetch(client)
    assert server.connections == []


async def test_tls_verifies_server_and_client_certificates(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    for authority in (ours, other):
        authority.establish()
        authority.issue("desk", hosts=(HOST,))
        authority.issue("program", user="ci")
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.bundle))
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_cert_chain(ours.certificate("desk"), ours.key("desk"))

    def client_context(trusts: Authority, identity: Authority | None) -> Context:
        files = (
            {"identity": str(identity.certificate("program")), "key": str(identity.key("program"))} if identity else {}
        )
        return Context(name="far", desk=server.address, token="", kubeconfig="", authority=str(trusts.bundle), **files)

    async with serving(OK, OK, context=server_tls) as server:
        async with HttpClient(server.address, {}, desk_tls_context(client_context(ours, ours))) as client:
            assert await fetch(client) == b"ok"
        for trusts, identity in ((other, ours), (ours, other), (ours, None)):
            async with HttpClient(server.address, {}, desk_tls_context(client_context(trusts, identity))) as client:
                with pytest.raises(TransportError):
                    await fetch(client)
