"""A caller with the permission `exec` sends the desk websocket messages that would exhaust its memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from yarl import URL

from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.desk.http.auth import ACCESS_REVOKED
from pincompute.desk.http.exec_routes import relay_websocket

_FINAL, _COMPRESSED, _BINARY, _CLOSE, _MASKED = 0x80, 0x40, 0x02, 0x08, 0x80
_MASK = b"\0\0\0\0"


class Relay(NamedTuple):
    """A websocket to a desk that relays it to a replica, and what the replica has received."""

    session: aiohttp.ClientSession
    url: URL
    received: list[bytes]


@pytest.fixture
async def relay() -> AsyncGenerator[Relay]:
    received: list[bytes] = []

    async def replica(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            received.append(message.data)
            await socket.send_bytes(message.data)
        return socket

    async def desk(request: web.Request) -> web.StreamResponse:
        request[ACCESS_REVOKED] = _never
        async with session.ws_connect(replica_server.make_url("/")) as socket:
            return await relay_websocket(request, socket)

    async with aiohttp.ClientSession() as session, _serve(replica) as replica_server, _serve(desk) as desk_server:
        yield Relay(session, desk_server.make_url("/"), received)


async def _never() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def _serve(handler: Handler) -> AsyncGenerator[TestServer]:
    application = web.Application()
    application.router.add_get("/", handler)
    server = TestServer(application)
    async with server:
        yield server


async def test_message_below_the_limit_is_relayed(relay: Relay) -> None:
    async with relay.session.ws_connect(relay.url, max_msg_size=0) as socket:
        await socket.send_bytes(b"x" * (MAX_MESSAGE_BYTES - 1))
        assert (await socket.receive()).data == b"x" * (MAX_MESSAGE_BYTES - 1)


async def test_longer_message_closes_the_connection(relay: Relay) -> None:
    async with relay.session.ws_connect(relay.url) as socket:
        await socket.send_bytes(b"x" * MAX_MESSAGE_BYTES)
        assert (await socket.receive()).type == WSMsgType.CLOSE
        assert socket.close_code == WSCloseCode.MESSAGE_TOO_BIG
    assert relay.received == []


async def test_long_message_in_many_fragments_closes_the_connection(relay: Relay) -> None:
    fragment = b"x" * 60_000
    async with _raw_websocket(relay.url) as (_, reader, writer):
        writer.write(_frame(_BINARY, fragment))
        for _ in range(MAX_MESSAGE_BYTES // len(fragment) + 1):
            writer.write(_frame(0, fragment))
        assert await _close_code(reader) == WSCloseCode.MESSAGE_TOO_BIG
    assert relay.received == []


async def test_compressed_message_is_not_expanded(relay: Relay) -> None:
    """100 MB of zeros are 100 kB compressed."""
    bomb = zlib.compress(bytes(100_000_000), wbits=-15)
    async with _raw_websocket(relay.url, "Sec-WebSocket-Extensions: permessage-deflate") as (head, reader, writer):
        assert b"Sec-WebSocket-Extensions" not in head
        writer.write(_frame(_FINAL | _COMPRESSED | _BINARY, bomb))
        assert await _close_code(reader) == WSCloseCode.PROTOCOL_ERROR
    assert relay.received == []


@asynccontextmanager
async def _raw_websocket(
    url: URL, *headers: str
) -> AsyncGenerator[tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A websocket of a client that sends what no library would; with the head of the server's response."""
    reader, writer = await asyncio.open_connection(url.host, url.port)
    handshake = (
        "GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers,
    )  # fmt: skip
    try:
        writer.write("".join(f"{each}\r\n" for each in (*handshake, "")).encode())
        yield await reader.readuntil(b"\r\n\r\n"), reader, writer
    finally:
        writer.close()


async def _close_code(reader: asyncio.StreamReader) -> int:
    head = await reader.readexactly(2)
    assert head[0] == _FINAL | _CLOSE
    return int.from_bytes((await reader.readexactly(head[1]))[:2])


def _frame(head: int, payload: bytes) -> bytes:
    if len(payload) < 2**16:
        return bytes((head, _MASKED | 126)) + len(payload).to_bytes(2) + _MASK + payload
    return bytes((head, _MASKED | 127)) + len(payload).to_bytes(8) + _MASK + payload
