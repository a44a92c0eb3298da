"""At the doorstep: who has no room is told so as anybody would be, and nobody hears the answer to somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from hypothesis import given, settings
from hypothesis import strategies as st

from lines import Line, line
from pincompute.api.identity import Identity
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem
from pincompute.base.reasons import DESK_BUSY
from pincompute.planning.lane import Bounds
from pincompute.planning.rights import Verb
from pincompute.submission.connections import Visitor, heard, listening, receive
from pincompute.submission.doorstep import Doorstep, Knock, knock_in
from pincompute.submission.guards import WHO, needs
from pincompute.submission.queue import Busy
from pincompute.submission.refusals import problems
from pincompute.submission.turns import Limits, turns

ONE = Bounds(at_work=1, waiting=0, of_one=1)
HEAD = b"POST /%b HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n%b\r\n"
KNOCK = Knock(b"POST /keeps", b"Bearer ann")
SAME = ("Retry-After", "Content-Type", "Content-Length")


def sent(path: bytes = b"keeps", who: bytes = b"ann", body: bytes = b"12", more: bytes = b"") -> bytes:
    return HEAD % (path, who, len(body), more) + body


class Work:
    """Of one at a time; what is kept lasts until all may end."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    @needs(Verb.CHANGE)
    async def keeps(self, _: web.Request) -> web.Response:
        self.begun.set()
        await self.may_end.wait()
        return web.Response(text="kept")

    @needs(Verb.CHANGE)
    async def tells(self, request: web.Request) -> web.Response:
        return web.Response(body=b"<" + await request.read() + b">")

    @web.middleware
    async def known(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whoever gets as far as this was read as a request."""
        self.came.append(request.path)
        request[WHO] = Identity(request.headers["Authorization"])
        return await handler(request)


class Desk:
    def __init__(self, bounds: Bounds = ONE) -> None:
        self.work = Work()
        doorstep = Doorstep()
        limits = Limits(0, writes=bounds)
        passing = [heard, problems, self.work.known, *turns(limits, SystemClock(), doorstep)]
        self.app = web.Application(middlewares=passing)
        receive(self.app, doorstep)
        self.app.add_routes([web.post("/keeps", self.work.keeps), web.post("/tells", self.work.tells)])
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Desk]:
        async with asyncio.timeout(60), listening(self.app, "127.0.0.1", 0) as self.port:
            yield self

    @asynccontextmanager
    async def taken(self) -> AsyncGenerator[Line]:
        """All the room there is, by ann."""
        async with line(self.port, sent()) as opened:
            await self.work.begun.wait()
            yield opened


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"POST /keeps HTTP/1.1\r\nHost: a\r\n",
        sent()[:-1],
        sent() + b"x",
        sent() + sent(),
        sent().replace(b"HTTP/1.1", b"HTTP/1.0"),
        sent(body=b"").replace(b"\r\nContent", b"\nContent"),
        sent().replace(b"Content-Length: 2", b"Content-Length: +2"),
        sent().replace(b"Content-Length: 2", b"Content-Length: " + b"2" * 5000),
        sent().replace(b"Content-Length: 2", b"Content-Length : 2"),
        sent(more=b"Content-Length: 2\r\n"),
        sent(more=b" folded: away\r\n"),
        sent(more=b"Transfer-Encoding: chunked\r\n"),
        sent(more=b"Expect: 100-continue\r\n"),
        sent(more=b"Upgrade: websocket\r\n"),
        sent(more=b"Connection: close\r\n"),
        sent(more=b"no field\r\n"),
    ],
)
def test_what_is_not_one_plain_request_is_heard_by_nobody_but_the_library(said: bytes) -> None:
    assert knock_in(said) is None


@pytest.mark.parametrize("said", [sent(), sent(more=b"Connection: keep-alive\r\n"), sent(more=b"X-A: b:c\r\n")])
def test_who_knocks_is_heard(said: bytes) -> None:
    assert knock_in(said) == KNOCK
    assert knock_in(said.replace(b"Authorization", b"authorization")) == KNOCK


def test_only_who_was_sent_away_is_answered_and_only_for_as_long_as_there_is_no_room() -> None:
    doorstep, full = Doorstep(), True

    def ask() -> None:
        if full:
            raise Busy(Problem(DESK_BUSY, "there is no room"), 7)

    assert doorstep.answer(KNOCK) is None
    doorstep.remember(KNOCK, ask)
    assert doorstep.answer(KNOCK._replace(shows=b"Bearer ben")) is None
    assert doorstep.answer(KNOCK._replace(asks=b"POST /tells")) is None
    assert b"\r\nRetry-After: 7\r\n" in (doorstep.answer(KNOCK) or b"")
    full = False
    assert doorstep.answer(KNOCK) is None
    assert "ann" not in repr(vars(doorstep))
    # Who shows nothing cannot be told from anybody else.
    doorstep.remember(KNOCK._replace(shows=b""), ask)
    full = True
    assert doorstep.answer(KNOCK._replace(shows=b"")) is None


async def test_whoever_knocks_again_hears_the_same_and_comes_in_when_there_is_room() -> None:
    desk = Desk()
    async with desk.open(), desk.taken() as taken, line(desk.port) as here:
        assert (await here.ask(sent()))[0] == 429
        assert desk.work.came == ["/keeps"] * 2
        again = await here.ask(sent(body=b"something else"))
        assert desk.work.came == ["/keeps"] * 2, "it was not read as a request"
        async with line(desk.port) as other:
            read = await other.ask(sent(more=b"Connection: close\r\n"))
        assert (again[0], again[2]) == (read[0], read[2])
        assert again[1].keys() == read[1].keys() - {"Server", "Connection"}
        assert [again[1][each] for each in SAME] == [read[1][each] for each in SAME]
        # Others are not those who were sent away.
        assert b"of yours" not in (await here.ask(sent(who=b"ben")))[2]
        assert len(desk.work.came) == 4
        desk.work.may_end.set()
        assert (await taken.hear())[2] == b"kept"
        assert (await here.ask(sent(b"tells", body=b"in")))[2] == b"<in>"
        assert (await here.ask(sent()))[2] == b"kept"


async def test_who_sends_the_next_before_they_have_heard_hears_each_in_its_order() -> None:
    desk = Desk()
    async with desk.open(), desk.taken() as taken, line(desk.port) as here:
        assert (await here.ask(sent()))[0] == 429
        taken.writer.write(sent())
        for _ in range(2):
            # By then that was heard, too.
            await here.ask(sent(who=b"ben"))
        desk.work.may_end.set()
        assert (await taken.hear())[2] == b"kept"
        assert (await taken.hear())[2] == b"kept"


async def test_what_somebody_sends_within_a_request_is_no_knock() -> None:
    desk = Desk(Bounds(at_work=8, waiting=8, of_one=1))
    async with desk.open(), desk.taken(), line(desk.port) as here:
        assert (await here.ask(sent()))[0] == 429
        first, second = sent(b"tells", b"ben"), sent(b"tells", b"ben", body=sent())
        assert (await here.ask(first + second.removesuffix(sent())))[2] == b"<12>"
        assert (await here.ask(sent()))[2] == b"<" + sent() + b">"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.binary(max_size=40), st.booleans()), min_size=1, max_size=8),
    st.lists(st.integers(0, 1500), max_size=6),
)
def test_however_it_is_sent_each_answer_is_to_its_own_question(
    asked: Sequence[tuple[bool, bytes, bool]], cuts: Sequence[int]
) -> None:
    """Ann has no room, and ben has: of what is asked for either on one line, some comes alone, and some in pieces."""

    async def run() -> None:
        desk = Desk(Bounds(at_work=8, waiting=8, of_one=1))
        async with desk.open(), desk.taken(), line(desk.port) as here:
            assert (await here.ask(sent()))[0] == 429
            all_, edges = b"", {0, *cuts}
            for away, body, alone in asked:
                all_ += sent(body=body) if away else sent(b"tells", b"ben", body)
                edges |= {len(all_)} if alone else set()
            for begin, end in pairwise(sorted({each for each in edges if each < len(all_)} | {len(all_)})):
                here.writer.write(all_[begin:end])
                await here.writer.drain()
                await asyncio.sleep(0)
            for away, body, _ in asked:
                status, _, told = await here.hear()
                assert status == 429 if away else (status, told) == (200, b"<" + body + b">")

    asyncio.run(run())


class Wire(asyncio.Transport):
    def __init__(self, certificate: object = None) -> None:
        super().__init__({"peercert": certificate})
        self.told: list[object] = []

    def write(self, data: object) -> None:
        self.told.append(data)


class Library(asyncio.Protocol):
    def __init__(self) -> None:
        self.read: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.read.append(data)


def visitor(wire: Wire) -> tuple[Visitor, Library]:
    """Ann, who has no room."""

    def ask() -> None:
        raise Busy(Problem(DESK_BUSY, "there is no room"), 7)

    doorstep, library = Doorstep(), Library()
    doorstep.remember(KNOCK, ask)
    found = Visitor(library, doorstep, {})
    found.connection_made(wire)
    return found, library


def test_who_shows_a_certificate_is_not_who_has_shown_only_a_token() -> None:
    wire = Wire(certificate={"subject": ()})
    ann, library = visitor(wire)
    ann.data_received(sent())
    assert (wire.told, library.read) == ([], [sent()])


def test_who_does_not_listen_is_not_told_more_and_more() -> None:
    wire = Wire()
    ann, library = visitor(wire)
    ann.data_received(sent())
    ann.pause_writing()
    ann.data_received(sent())
    ann.resume_writing()
    # The library waits with what it has to say, and nothing is told before that.
    ann.data_received(sent())
    assert (len(wire.told), len(library.read)) == (1, 2)
