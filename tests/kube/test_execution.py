"""A program's streams, over a websocket that says what a test wants."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Invalid, NotFound, Unreachable
from pincompute.kube.execution import PROTOCOL, Chunk
from pincompute.kube.forwarding import PROTOCOL as FORWARDING
from pincompute.kube.tunnel import tunnel
from pretended import Answer, pretending, says

Talk = Callable[[web.WebSocketResponse], Awaitable[None]]

DONE = b'\3{"status":"Success"}'
FAILED = b'\3{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}'
BROKEN = b'\3{"status":"Failure","reason":"InternalError","code":500,"message":"no such program"}'


def talking(talk: Talk, protocol: str = PROTOCOL) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(protocol,))
        await socket.prepare(request)
        await talk(socket)
        await socket.close()
        return socket

    return answer


def sending(*messages: bytes) -> Answer:
    async def talk(socket: web.WebSocketResponse) -> None:
        for message in messages:
            await socket.send_bytes(message)

    return talking(talk)


async def run(client: Client) -> tuple[list[Chunk], int | None]:
    async with client.execute("me", "web-0", ["sh", "-c", "a & b=c"], container="web") as execution:
        return [chunk async for chunk in execution.output()], execution.code


async def test_streams_are_told_apart_and_the_end_says_how_it_was() -> None:
    async with pretending(sending(b"\1", b"\2", b"\1one", b"\2two", b"\1\xff\0", FAILED), token="secret") as (
        client,
        asked,
    ):
        assert await run(client) == ([("stdout", b"one"), ("stderr", b"two"), ("stdout", b"\xff\0")], 7)
    assert asked[0].path == "/api/v1/namespaces/me/pods/web-0/exec"
    assert asked[0].query.getall("command") == ["sh", "-c", "a & b=c"]
    assert {name: asked[0].query[name] for name in ("container", "stdout", "stderr")} == {
        "container": "web",
        "stdout": "true",
        "stderr": "true",
    }
    assert asked[0].headers["Authorization"] == "Bearer secret"
    assert "X-About" not in asked[0].headers


async def test_what_is_typed_arrives_and_so_does_its_end() -> None:
    heard: list[bytes] = []

    async def talk(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            assert message.type == aiohttp.WSMsgType.BINARY
            heard.append(message.data)
            if message.data == b"\xff\0":
                await socket.send_bytes(DONE)

    async with pretending(talking(talk)) as (client, asked):
        async with client.execute("me", "web-0", ["sh"], stdin=True, tty=True) as execution:
            await execution.resize(80, 24)
            await execution.write(b"exit\n")
            await execution.end_input()
            assert [chunk async for chunk in execution.output()] == []
        assert execution.code == 0
    assert heard == [b'\4{"Width":80,"Height":24}', b"\0exit\n", b"\xff\0"]
    # A terminal has one stream.
    assert dict(asked[0].query) == {"stdin": "true", "stdout": "true", "tty": "true", "command": "sh"}


async def test_a_connection_that_ends_before_the_program_is_no_success() -> None:
    async with pretending(sending(b"\1half")) as (client, _):
        with pytest.raises(Unreachable, match="it broke off before the program had ended"):
            await run(client)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (says(404, '{"kind":"Status","code":404,"reason":"NotFound","message":"no pod"}'), NotFound, "no pod"),
        (says(422, '{"kind":"Status","code":422,"reason":"Invalid","message":"no"}'), Invalid, "no"),
        (says(200, "<h1>Log in</h1>"), ApiError, "Log in"),
        (sending(BROKEN), ApiError, "no such program"),
    ],
)
async def test_why_not_is_told(answer: Answer, kind: type[ApiError], message: str) -> None:
    async with pretending(answer) as (client, _):
        with pytest.raises(kind, match=message) as caught:
            await run(client)
    assert str(caught.value.problem().where) == "pods me/web-0"


async def test_a_port_is_spoken_with_until_it_hangs_up() -> None:
    heard: list[bytes] = []

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\0P\0")
        await socket.send_bytes(b"\1P\0")
        heard.append((await socket.receive()).data)
        # As long as a greeting, and none.
        await socket.send_bytes(b"\0ok")
        await socket.send_bytes(b"\0ay")

    async with pretending(talking(talk, FORWARDING)) as (client, asked), client.forward("me", "web-0", 80) as there:
        await there.write(b"hello")
        assert [piece async for piece in there.received()] == [b"ok", b"ay"]
    assert heard == [b"\0hello"]
    assert asked[0].path_qs == "/api/v1/namespaces/me/pods/web-0/portforward?ports=80"


async def test_a_port_as_a_socket_of_this_machine() -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        for message in (b"\0P\0", b"\1P\0"):
            await socket.send_bytes(message)
        heard = (await socket.receive()).data
        await socket.send_bytes(b"\0heard " + heard[1:])

    async with pretending(talking(talk, FORWARDING)) as (client, _), tunnel(client, "me", "web-0", 80) as path:
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for word in (b"one", b"two"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(word)
            assert await reader.read() == b"heard " + word
            writer.close()
    assert not path.parent.exists()


async def test_a_socket_to_where_nobody_may_go_breaks_off() -> None:
    answer = says(403, '{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
    async with pretending(answer) as (client, _), tunnel(client, "me", "web-0", 80) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()


async def test_a_port_that_nobody_listens_on() -> None:
    refused = b"\1P\0", b"\1connection refused\n"

    async def talk(socket: web.WebSocketResponse) -> None:
        for message in (b"\0P\0", *refused):
            await socket.send_bytes(message)

    async with pretending(talking(talk, FORWARDING)) as (client, _), client.forward("me", "web-0", 80) as connection:
        with pytest.raises(ApiError, match=r"^connection refused$"):
            assert [piece async for piece in connection.received()] == []
        await connection.write(b"too late")


async def test_a_server_that_speaks_otherwise() -> None:
    async def nothing(_: web.WebSocketResponse) -> None:
        pass

    async with pretending(talking(nothing, "v4.channel.k8s.io")) as (client, _):
        with pytest.raises(ApiError, match=r"the server does not speak v5\.channel"):
            await run(client)
