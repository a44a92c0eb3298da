"""A desk with more to do than it can: who waits, who is sent away, and that nothing which was begun is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.typedefs import Handler

from pincompute.api.identity import Identity
from pincompute.base.clock import SystemClock
from pincompute.cli.both_ways import coming_back
from pincompute.cli.come_back import ComeBack
from pincompute.planning.lane import Bounds
from pincompute.planning.rights import Verb
from pincompute.submission import turns as bounds
from pincompute.submission.doorstep import Doorstep
from pincompute.submission.guards import SIGNED_IN, WHO, needs
from pincompute.submission.refusals import problems
from pincompute.submission.requests import body_of, sender_of
from pincompute.submission.server import carried_through
from pincompute.submission.speech import Manner, speaks
from pincompute.submission.turns import Limits, turns

ONE = Bounds(at_work=1, waiting=2, of_one=2)


class Still(SystemClock):
    """It is always the same moment, and whoever sleeps is awake at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return 1_000.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Work:
    """What is asked for takes until all may end."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[str] = asyncio.Queue()
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.ended: list[str] = []
        self.may_end = asyncio.Event()
        self.requests: dict[str, web.Request] = {}

    @needs(Verb.CHANGE)
    async def change(self, request: web.Request) -> web.StreamResponse:
        body, who = body_of(request), request[WHO].name
        self.begun.put_nowait(who)
        await self.may_end.wait()
        self.ended.append(who)
        return web.Response(text=f"{len(body)}")

    @needs(Verb.CHANGE)
    async def rest(self, request: web.Request) -> web.StreamResponse:
        sender_of(request).rests()
        return await self.change(request)

    @needs(SIGNED_IN)
    async def look(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="seen")

    @needs(Verb.LOOK)
    @speaks(manner=Manner.LINES)
    async def follow(self, request: web.Request) -> web.StreamResponse:
        return await self.change(request)

    @web.middleware
    async def noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """By the time that a test hears of it, it was let in or sent away."""
        request[WHO] = Identity(request.headers["Who"])
        self.requests[request[WHO].name] = request
        self.came.put_nowait(request[WHO].name)
        return await handler(request)


class Told(NamedTuple):
    status: int
    reason: str
    after: str
    words: str


class Desk(NamedTuple):
    http: TestClient[web.Request, web.Application]
    work: Work

    async def ask(self, who: str, path: str = "/change", method: str = "DELETE", body: object = None) -> Told:
        return await (await self.asking(who, path, method, body))

    async def asking(
        self, who: str, path: str = "/change", method: str = "DELETE", body: object = None
    ) -> asyncio.Task[Told]:
        """It is in, or was sent away."""
        task = asyncio.create_task(self._ask(who, path, method, body))
        assert await self.work.came.get() == who
        return task

    async def _ask(self, who: str, path: str, method: str, body: object) -> Told:
        async with self.http.request(method, path, data=body, headers={"Who": who}) as answer:
            text = await answer.read()
            if answer.status < 400:
                return Told(answer.status, "", "", text.decode())
            (error,) = msgspec.json.decode(text)["errors"]
            return Told(answer.status, error["reason"], answer.headers.get("Retry-After", ""), error["detail"])


@asynccontextmanager
async def desk(limits: Limits) -> AsyncGenerator[Desk]:
    work = Work()
    let_in, in_turn = turns(limits, Still(), Doorstep())
    passing = [problems, work.noted, let_in, carried_through, in_turn]
    app = web.Application(middlewares=passing, client_max_size=100_000)
    app.add_routes(
        [
            *(web.route(method, "/change", work.change) for method in ("DELETE", "POST")),
            web.delete("/rest", work.rest),
            web.get("/look", work.look),
            web.get("/follow", work.follow),
        ]
    )
    async with TestClient(TestServer(app)) as http:
        yield Desk(http, work)
        work.may_end.set()


async def test_each_client_has_a_turn_however_much_another_sends() -> None:
    async with desk(Limits(writes=Bounds(at_work=1, waiting=10, of_one=5))) as here:
        flood = [await here.asking("flood") for _ in range(5)]
        too_many = await here.ask("flood")
        assert (too_many.status, too_many.reason, too_many.after) == (429, "TooManyRequests", "1")
        assert too_many.words.startswith("5 requests that change something of yours are waiting or at work here")
        others = [await here.asking("ann"), await here.asking("bob")]
        here.work.may_end.set()
        assert [each.status for each in await asyncio.gather(*flood, *others)] == [200] * 7
        # One was at work, one had waited for longer; then it is their turn.
        assert here.work.ended == ["flood", "flood", "ann", "bob", "flood", "flood", "flood"]


async def test_who_has_most_waiting_makes_room_for_whoever_has_less() -> None:
    async with desk(Limits(writes=Bounds(at_work=1, waiting=2, of_one=3))) as here:
        flood = [await here.asking("flood") for _ in range(3)]
        ann = await here.asking("ann")
        made_room = await flood.pop()
        assert (made_room.status, made_room.reason, made_room.after) == (429, "TooManyRequests", "1")
        assert made_room.words.startswith("2 requests that change something of yours are waiting or at work here")
        assert (await here.ask("flood")).reason == "DeskBusy"
        here.work.may_end.set()
        assert [each.status for each in await asyncio.gather(ann, *flood)] == [200] * 3
        assert sorted(here.work.ended) == ["ann", "flood", "flood"]


async def test_who_is_long_in_coming_makes_room_too() -> None:
    never = asyncio.Event()

    async def slowly() -> AsyncGenerator[bytes]:
        yield b"a"
        await never.wait()

    async with desk(Limits(writes=Bounds(at_work=1, waiting=1, of_one=2))) as here:
        slow = [await here.asking("eve", method="POST", body=slowly()) for _ in range(2)]
        ann = await here.asking("ann")
        here.work.may_end.set()
        assert (await ann).status == 200
        never.set()
        assert sorted([(await each).status for each in slow]) == [200, 429]


async def test_reads_wait_behind_no_writes_and_streams_are_only_counted() -> None:
    async with desk(Limits(writes=ONE, reads=ONE, streams=Bounds(at_work=2, waiting=0, of_one=2))) as here:
        kept = [await here.asking(who) for who in ("ann", "bob", "cay")]
        full = await here.ask("dan")
        assert (full.status, full.reason) == (429, "DeskBusy")
        assert full.words.startswith("3 requests that change something are waiting or at work here")
        kept += [await here.asking(who, "/follow", "GET") for who in ("ann", "bob")]
        assert (await here.ask("dan", "/follow", "GET")).words.startswith("2 streams are")
        assert (await here.ask("dan", "/look", "GET")).words == "seen"
        here.work.may_end.set()
        assert [each.status for each in await asyncio.gather(*kept)] == [200] * 5


async def test_who_only_waits_for_the_cluster_takes_nobodys_place() -> None:
    async with desk(Limits(writes=ONE)) as here:
        asked = [await here.asking(who, "/rest") for who in ("ann", "bob", "cay", "dan", "eve")]
        for _ in asked:
            await here.work.begun.get()
        here.work.may_end.set()
        assert [each.status for each in await asyncio.gather(*asked)] == [200] * 5


async def test_who_leaves_while_they_wait_has_asked_for_nothing_and_what_was_begun_is_done() -> None:
    async with desk(Limits(writes=ONE)) as here:
        begun, waiting = await here.asking("ann"), await here.asking("bob")
        assert await here.work.begun.get() == "ann"
        for each in (begun, waiting):
            each.cancel()
        await asyncio.wait([begun, waiting])
        while here.work.requests["bob"].transport:  # noqa: ASYNC110  (nothing tells of it)
            await asyncio.sleep(0.01)
        last = await here.asking("cay")
        here.work.may_end.set()
        assert (await last).status == 200
        assert here.work.ended == ["ann", "cay"]


async def test_what_is_sent_slowly_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_SECONDS", 0.2)
    never = asyncio.Event()

    async def slowly() -> AsyncGenerator[bytes]:
        yield b"a"
        await never.wait()

    async with desk(Limits(writes=ONE)) as here:
        slow = await here.asking("eve", method="POST", body=slowly())
        here.work.may_end.set()
        assert (await here.ask("ann", method="POST", body=b"all")).words == "3"
        try:
            told = await slow
        finally:
            never.set()
        assert (told.status, told.reason) == (408, "RequestSlow")
        large = await here.ask("ann", method="POST", body=b"x" * 100_001)
        assert (large.status, large.reason) == (422, "DocumentInvalid")
        assert here.work.ended == ["ann"]


async def test_nobody_asks_more_often_than_they_may() -> None:
    async with desk(Limits(rate=2)) as here:
        asked = [await here.ask("ann", "/look", "GET") for _ in range(12)]
        assert [each.status for each in asked] == [200] * 10 + [429] * 2
        assert (asked[-1].reason, asked[-1].after) == ("TooManyRequests", "1")
        assert asked[-1].words == "you ask more often than 2 times a second"
        assert (await here.ask("bob", "/look", "GET")).status == 200


@pytest.mark.parametrize(("after", "status", "sent"), [(["2", "3"], 200, 3), (["2"] * 9, 429, 3), (["60"], 429, 1)])
async def test_the_hand_comes_back_when_it_was_told_to(
    after: list[str], status: int, sent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    keys: list[tuple[str, bytes]] = []
    clock = Still()

    async def busy(request: web.Request) -> web.Response:
        keys.append((request.headers["Idempotency-Key"], await request.read()))
        times = len(keys) - 1
        return web.Response(status=429, headers={"Retry-After": after[times]}) if times < len(after) else web.Response()

    app = web.Application()
    app.add_routes([web.post("/", busy)])
    middlewares = (coming_back(ComeBack(clock, lambda: 0.5)),)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession(middlewares=middlewares, headers={"Idempotency-Key": "k"}) as session,
        session.post(server.make_url("/"), data=b"it") as answer,
    ):
        assert answer.status == status
    assert keys == [("k", b"it")] * sent
    waits = [float(each) * 1.125 for each in after[: sent - 1]]
    assert clock.slept == waits
    assert capsys.readouterr().err == "".join(f"the desk is busy: asking again in {each:.0f} s\n" for each in waits)


async def test_the_hand_multiplies_no_load() -> None:
    """A tenth of what is asked is asked again, and a few."""
    times, clock = 0, Still()

    async def busy(_: web.Request) -> web.Response:
        nonlocal times
        times += 1
        return web.Response(status=429, headers={"Retry-After": "1"})

    app = web.Application()
    app.add_routes([web.get("/", busy)])
    async with TestServer(app) as server, aiohttp.ClientSession(middlewares=(coming_back(ComeBack(clock)),)) as session:
        for _ in range(100):
            async with session.get(server.make_url("/")) as answer:
                assert answer.status == 429
    assert times <= 100 + 10 + 4
