"""Exec and port-forward over websockets of a fake API server."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from fake_api_server import Responder, fake_api_server, respond_with
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Invalid, NotFound, Unreachable
from pincompute.kube.exec_stream import EXEC_PROTOCOL, OutputChunk
from pincompute.kube.port_forward import PORT_FORWARD_PROTOCOL as FORWARDING
from pincompute.kube.socket_forward import forward_to_socket

Dialog = Callable[[web.WebSocketResponse], Awaitable[None]]

DONE = b'\3{"status":"Success"}'
FAILED = b'\3{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}'
BROKEN = b'\3{"status":"Failure","reason":"InternalError","code":500,"message":"no such program"}'


def websocket_server(dialog: Dialog, protocol: str = EXEC_PROTOCOL) -> Responder:
    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(protocol,))
        await socket.prepare(request)
        await dialog(socket)
        await socket.close()
        return socket

    return answer


def sending(*messages: bytes) -> Responder:
    async def dialog(socket: web.WebSocketResponse) -> None:
        for message in messages:
            await socket.send_bytes(message)

    return websocket_server(dialog)


async def run(client: Client) -> tuple[list[OutputChunk], int | None]:
    async with client.exec("me", "web-0", ["sh", "-c", "a & b=c"], container="web") as execution:
        return [chunk async for chunk in execution.output()], execution.exit_code


async def test_exec_separates_stdout_and_stderr() -> None:
    async with fake_api_server(sending(b"\1", b"\2", b"\1one", b"\2two", b"\1\xff\0", FAILED), token="secret") as (
        client,
        requests,
    ):
        assert await run(client) == ([("stdout", b"one"), ("stderr", b"two"), ("stdout", b"\xff\0")], 7)
    assert requests[0].path == "/api/v1/namespaces/me/pods/web-0/exec"
    assert requests[0].query.getall("command") == ["sh", "-c", "a & b=c"]
    assert {name: requests[0].query[name] for name in ("container", "stdout", "stderr")} == {
        "container": "web",
        "stdout": "true",
        "stderr": "true",
    }
    assert requests[0].headers["Authorization"] == "Bearer secret"
    assert "X-About" not in requests[0].headers


async def test_exec_sends_stdin_and_its_end() -> None:
    received: list[bytes] = []

    async def dialog(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            assert message.type == aiohttp.WSMsgType.BINARY
            received.append(message.data)
            if message.data == b"\xff\0":
                await socket.send_bytes(DONE)

    async with fake_api_server(websocket_server(dialog)) as (client, requests):
        async with client.exec("me", "web-0", ["sh"], stdin=True, tty=True) as execution:
            await execution.resize(80, 24)
            await execution.write_stdin(b"exit\n")
            await execution.close_stdin()
            assert [chunk async for chunk in execution.output()] == []
        assert execution.exit_code == 0
    assert received == [b'\4{"Width":80,"Height":24}', b"\0exit\n", b"\xff\0"]
    # A terminal has one stream.
    assert dict(requests[0].query) == {"stdin": "true", "stdout": "true", "tty": "true", "command": "sh"}


async def test_closed_connection_before_exit_is_unreachable() -> None:
    async with fake_api_server(sending(b"\1half")) as (client, _):
        with pytest.raises(Unreachable, match="the websocket was closed before the program had ended"):
            await run(client)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (respond_with(404, '{"kind":"Status","code":404,"reason":"NotFound","message":"no pod"}'), NotFound, "no pod"),
        (respond_with(422, '{"kind":"Status","code":422,"reason":"Invalid","message":"no"}'), Invalid, "no"),
        (respond_with(200, "<h1>Log in</h1>"), ApiError, "Log in"),
        (sending(BROKEN), ApiError, "no such program"),
    ],
)
async def test_exec_raises_error_of_response(answer: Responder, kind: type[ApiError], message: str) -> None:
    async with fake_api_server(answer) as (client, _):
        with pytest.raises(kind, match=message) as caught:
            await run(client)
    assert str(caught.value.problem().where) == "pods me/web-0"


async def test_port_forward_sends_and_receives() -> None:
    received: list[bytes] = []

    async def dialog(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\0P\0")
        await socket.send_bytes(b"\1P\0")
        received.append((await socket.receive()).data)
        # Data of the same length as a channel's first message.
        await socket.send_bytes(b"\0ok")
        await socket.send_bytes(b"\0ay")

    async with (
        fake_api_server(websocket_server(dialog, FORWARDING)) as (client, requests),
        client.port_forward("me", "web-0", 80) as connection,
    ):
        await connection.write(b"hello")
        assert [piece async for piece in connection.chunks()] == [b"ok", b"ay"]
    assert received == [b"\0hello"]
    assert requests[0].path_qs == "/api/v1/namespaces/me/pods/web-0/portforward?ports=80"


async def test_forwards_unix_socket_to_port() -> None:
    async def dialog(socket: web.WebSocketResponse) -> None:
        for message in (b"\0P\0", b"\1P\0"):
            await socket.send_bytes(message)
        received = (await socket.receive()).data
        await socket.send_bytes(b"\0heard " + received[1:])

    async with (
        fake_api_server(websocket_server(dialog, FORWARDING)) as (client, _),
        forward_to_socket(client, "me", "web-0", 80) as path,
    ):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for word in (b"one", b"two"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(word)
            assert await reader.read() == b"heard " + word
            writer.close()
    assert not path.parent.exists()


async def test_forbidden_port_forward_closes_socket() -> None:
    answer = respond_with(403, '{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
    async with fake_api_server(answer) as (client, _), forward_to_socket(client, "me", "web-0", 80) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()


async def test_port_forward_to_closed_port() -> None:
    refused = b"\1P\0", b"\1connection refused\n"

    async def dialog(socket: web.WebSocketResponse) -> None:
        for message in (b"\0P\0", *refused):
            await socket.send_bytes(message)

    async with (
        fake_api_server(websocket_server(dialog, FORWARDING)) as (client, _),
        client.port_forward("me", "web-0", 80) as connection,
    ):
        with pytest.raises(ApiError, match=r"^connection refused$"):
            assert [piece async for piece in connection.chunks()] == []
        await connection.write(b"too late")


async def test_rejects_other_websocket_protocol() -> None:
    async def nothing(_: web.WebSocketResponse) -> None:
        pass

    async with fake_api_server(websocket_server(nothing, "v4.channel.k8s.io")) as (client, _):
        with pytest.raises(ApiError, match=r"the server does not support the protocol v5\.channel"):
            await run(client)
