"""Asking a server: whatever it may answer as HTTP has it, lines that break, and who is believed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pincompute.base.certificates import Authority
from pincompute.base.context import Context
from pincompute.cli.asking import Asker, Unanswered
from pincompute.cli.trust import tls

HOST = "127.0.0.1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HANG_UP = b""


class Server:
    """Says one thing for each that it is asked, or hangs up; and remembers what it was asked, on which line."""

    def __init__(self, *said: bytes) -> None:
        self.address = ""
        self.lines: list[list[bytes]] = []
        self._said = list(said)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked: list[bytes] = []
        self.lines.append(asked)
        try:
            while self._said:
                head = await reader.readuntil(b"\r\n\r\n")
                _, told, length = head.partition(b"Content-Length: ")
                asked.append(head + await reader.readexactly(int(length.split()[0]) if told else 0))
                said = self._said.pop(0)
                if said == HANG_UP:
                    break
                # In the smallest pieces that there are.
                for byte in said:
                    writer.write(bytes([byte]))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*said: bytes, context: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    server = Server(*said)
    listening = await asyncio.start_server(server.serve, HOST, 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    server.address = f"{'https' if context else 'http'}://{HOST}:{port}/"
    async with listening:
        yield server


async def asked(asker: Asker, *, method: str = "GET", path: str = "/v1/whoami", body: bytes = b"") -> bytes:
    async with asker.ask(method, path, body) as answer:
        return await answer.read()


@pytest.mark.parametrize(
    ("said", "body"),
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
async def test_an_answer_is_read_to_its_end_and_its_line_is_asked_again(said: bytes, body: bytes) -> None:
    async with serving(said, OK) as server, Asker(server.address, {}) as asker:
        assert await asked(asker) == body
        assert await asked(asker) == b"ok"
    assert [len(each) for each in server.lines] == [2]


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nonce",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nonce",
    ],
)
async def test_a_line_that_is_to_end_is_not_asked_again(said: bytes) -> None:
    async with serving(said, OK) as server, Asker(server.address, {}) as asker:
        assert [await asked(asker), await asked(asker)] == [b"once", b"ok"]
    assert [len(each) for each in server.lines] == [1, 1]


async def test_an_answer_may_end_with_its_line() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\nuntil I hang up") as server, Asker(server.address, {}) as asker:
        assert await asked(asker) == b"until I hang up"


async def test_who_hangs_up_between_two_questions_is_asked_anew() -> None:
    async with serving(OK, HANG_UP, OK) as server, Asker(server.address, {}) as asker:
        assert [await asked(asker), await asked(asker, body=b"once more")] == [b"ok", b"ok"]
    first, second = server.lines
    # The same was said again, on a line of its own.
    assert first[1:] == second
    assert first[1].endswith(b"once more")


async def test_what_is_short_is_heard_to_its_end_by_who_does_not_want_it_and_its_line_is_asked_again() -> None:
    async with serving(OK, OK) as server, Asker(server.address, {}) as asker:
        await asker.pass_over(await asker.send("GET", "/"))
        assert await asked(asker) == b"ok"
    assert [len(each) for each in server.lines] == [2]


async def test_who_leaves_amid_a_short_answer_does_not_wait_for_its_rest() -> None:
    begun = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.removesuffix(b"ok"))
        await reader.read()
        writer.close()

    async def listen() -> None:
        async with asker.ask("GET", "/") as answer:
            begun.set()
            await answer.read()

    listening = await asyncio.start_server(serve, HOST, 0)
    address = f"http://{HOST}:{listening.sockets[0].getsockname()[1]}/"
    async with listening, Asker(address, {}) as asker:
        leaving = asyncio.ensure_future(listen())
        await begun.wait()
        leaving.cancel()
        await asyncio.wait([leaving], timeout=60)
    assert leaving.cancelled()


async def test_who_does_not_read_to_the_end_leaves_the_line() -> None:
    async with serving(CHUNKED + b"2\r\nab\r\n", OK) as server, Asker(server.address, {}) as asker:
        async with asker.ask("GET", "/") as answer:
            assert await answer.piece() in {b"a", b"ab"}
        assert await asked(asker) == b"ok"
    assert [len(each) for each in server.lines] == [1, 1]


@pytest.mark.parametrize(
    "said",
    [
        HANG_UP,
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
async def test_what_breaks_or_is_not_http_is_no_answer(said: bytes) -> None:
    async with serving(said) as server, Asker(server.address, {}) as asker:
        with pytest.raises(Unanswered):
            await asked(asker)


async def test_nobody_is_there() -> None:
    async with serving() as server:
        pass
    async with Asker(server.address, {}) as asker:
        with pytest.raises(Unanswered):
            await asked(asker)


async def test_what_is_asked() -> None:
    async with serving(OK) as server, Asker(f"{server.address}base/", {"Authorization": "Bearer t"}) as asker:
        await asked(asker, method="POST", path="/v1/x?y=%0D", body=b"a\r\nb")
    head, _, body = server.lines[0][0].partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "POST /base/v1/x?y=%0D HTTP/1.1"
    assert {"Authorization: Bearer t", "Content-Length: 4", f"Host: {server.address[7:-1]}"} <= set(headers)
    assert body == b"a\r\nb"


@pytest.mark.parametrize("word", ["t\r\nX-Administers: yes", "t\n", "t\0"])
async def test_nobody_says_more_than_a_header(word: str) -> None:
    async with serving(OK) as server, Asker(server.address, {"Authorization": word}) as asker:
        with pytest.raises(ValueError, match="one line"):
            await asked(asker)
    assert server.lines == []


async def test_by_tls_each_believes_whom_it_was_told_to(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    for each in (ours, other):
        each.establish()
        each.issue("desk", hosts=(HOST,))
        each.issue("program", user="ci")
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.bundle))
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(ours.certificate("desk"), ours.key("desk"))

    def known(by: Authority, shows: Authority | None) -> Context:
        shown = {"identity": str(shows.certificate("program")), "key": str(shows.key("program"))} if shows else {}
        return Context(name="far", desk=server.address, token="", kubeconfig="", authority=str(by.bundle), **shown)

    async with serving(OK, OK, context=made) as server:
        async with Asker(server.address, {}, tls(known(ours, ours))) as asker:
            assert await asked(asker) == b"ok"
        for by, shows in ((other, ours), (ours, other), (ours, None)):
            async with Asker(server.address, {}, tls(known(by, shows))) as asker:
                with pytest.raises(Unanswered):
                    await asked(asker)
