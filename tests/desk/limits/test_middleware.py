"""A desk with more requests than it can handle: which of them run, wait or are rejected."""

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

from pincompute.admission.authorization import Permission
from pincompute.api.identity import Identity
from pincompute.base.clock import SystemClock
from pincompute.cli.retry import RetryPolicy
from pincompute.cli.websocket import retry_middleware
from pincompute.desk.http.auth import AUTHENTICATED, CALLER, requires
from pincompute.desk.http.endpoint import ResponseMode, endpoint
from pincompute.desk.http.errors import problem_middleware
from pincompute.desk.http.requests import call_context, request_body
from pincompute.desk.http.server import shield_writes
from pincompute.desk.limits import middleware as limit_settings
from pincompute.desk.limits.fair_queue import QueueLimits
from pincompute.desk.limits.middleware import Limits, RequestLimiter, limit_middlewares

ONE_AT_A_TIME = QueueLimits(max_running=1, max_waiting=2, max_per_client=2)


class StoppedClock(SystemClock):
    """Its time never changes, and sleeping returns at once."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        return 1_000.0

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


class Handlers:
    """Handlers that run until all may finish."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        self.started: asyncio.Queue[str] = asyncio.Queue()
        self.finished: list[str] = []
        self.finish = asyncio.Event()
        self.requests: dict[str, web.Request] = {}

    @requires(Permission.CHANGE)
    async def write(self, request: web.Request) -> web.StreamResponse:
        body, caller = request_body(request), request[CALLER].name
        self.started.put_nowait(caller)
        await self.finish.wait()
        self.finished.append(caller)
        return web.Response(text=f"{len(body)}")

    @requires(Permission.CHANGE)
    async def write_and_wait(self, request: web.Request) -> web.StreamResponse:
        call_context(request).release_slot()
        return await self.write(request)

    @requires(AUTHENTICATED)
    async def read(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="read")

    @requires(Permission.VIEW)
    @endpoint(mode=ResponseMode.STREAM)
    async def stream(self, request: web.Request) -> web.StreamResponse:
        return await self.write(request)

    @web.middleware
    async def authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """When the test learns of a request from `arrived`, it is admitted or rejected already."""
        request[CALLER] = Identity(request.headers["Caller"])
        self.requests[request[CALLER].name] = request
        self.arrived.put_nowait(request[CALLER].name)
        return await handler(request)


class Outcome(NamedTuple):
    status: int
    reason: str
    retry_after: str
    text: str


class LimitedApp(NamedTuple):
    http: TestClient[web.Request, web.Application]
    handlers: Handlers

    async def send(self, caller: str, path: str = "/write", method: str = "DELETE", body: object = None) -> Outcome:
        return await (await self.start(caller, path, method, body))

    async def start(
        self, caller: str, path: str = "/write", method: str = "DELETE", body: object = None
    ) -> asyncio.Task[Outcome]:
        """Returns once the request is admitted or rejected."""
        task = asyncio.create_task(self._send(caller, path, method, body))
        assert await self.handlers.arrived.get() == caller
        return task

    async def _send(self, caller: str, path: str, method: str, body: object) -> Outcome:
        async with self.http.request(method, path, data=body, headers={"Caller": caller}) as response:
            text = await response.read()
            if response.status < 400:
                return Outcome(response.status, "", "", text.decode())
            (error,) = msgspec.json.decode(text)["errors"]
            return Outcome(response.status, error["reason"], response.headers.get("Retry-After", ""), error["detail"])


@asynccontextmanager
async def limited_app(limits: Limits) -> AsyncGenerator[LimitedApp]:
    handlers = Handlers()
    reject_or_admit, wait_turn = limit_middlewares(RequestLimiter(limits, StoppedClock()))
    middlewares = [problem_middleware, handlers.authenticate, reject_or_admit, shield_writes, wait_turn]
    app = web.Application(middlewares=middlewares, client_max_size=100_000)
    app.add_routes(
        [
            *(web.route(method, "/write", handlers.write) for method in ("DELETE", "POST")),
            web.delete("/write-and-wait", handlers.write_and_wait),
            web.get("/read", handlers.read),
            web.get("/stream", handlers.stream),
        ]
    )
    async with TestClient(TestServer(app)) as http:
        yield LimitedApp(http, handlers)
        handlers.finish.set()


async def test_clients_are_served_in_turn_however_much_one_sends() -> None:
    limits = Limits(writes=QueueLimits(max_running=1, max_waiting=10, max_per_client=5))
    async with limited_app(limits) as app:
        flood = [await app.start("flood") for _ in range(5)]
        rejected = await app.send("flood")
        assert (rejected.status, rejected.reason, rejected.retry_after) == (429, "TooManyRequests", "1")
        assert rejected.text == "the desk already has 5 write requests of yours running or waiting, which is the limit"
        others = [await app.start("ann"), await app.start("bob")]
        app.handlers.finish.set()
        assert [each.status for each in await asyncio.gather(*flood, *others)] == [200] * 7
        # The first was running and the second had waited longest; after that each other client has its turn.
        assert app.handlers.finished == ["flood", "flood", "ann", "bob", "flood", "flood", "flood"]


async def test_client_with_most_requests_is_evicted_for_another() -> None:
    limits = Limits(writes=QueueLimits(max_running=1, max_waiting=2, max_per_client=3))
    async with limited_app(limits) as app:
        flood = [await app.start("flood") for _ in range(3)]
        ann = await app.start("ann")
        evicted = await flood.pop()
        assert (evicted.status, evicted.reason, evicted.retry_after) == (429, "TooManyRequests", "1")
        assert evicted.text == "the desk already has 2 write requests of yours running or waiting, which is the limit"
        assert (await app.send("flood")).reason == "DeskBusy"
        app.handlers.finish.set()
        assert [each.status for each in await asyncio.gather(ann, *flood)] == [200] * 3
        assert sorted(app.handlers.finished) == ["ann", "flood", "flood"]


async def test_request_whose_body_arrives_slowly_is_evicted_too() -> None:
    never = asyncio.Event()

    async def slow_body() -> AsyncGenerator[bytes]:
        yield b"a"
        await never.wait()

    limits = Limits(writes=QueueLimits(max_running=1, max_waiting=1, max_per_client=2))
    async with limited_app(limits) as app:
        slow = [await app.start("eve", method="POST", body=slow_body()) for _ in range(2)]
        ann = await app.start("ann")
        app.handlers.finish.set()
        assert (await ann).status == 200
        never.set()
        assert sorted([(await each).status for each in slow]) == [200, 429]


async def test_reads_writes_and_streams_have_separate_limits() -> None:
    streams = QueueLimits(max_running=2, max_waiting=0, max_per_client=2)
    async with limited_app(Limits(writes=ONE_AT_A_TIME, reads=ONE_AT_A_TIME, streams=streams)) as app:
        started = [await app.start(caller) for caller in ("ann", "bob", "cay")]
        rejected = await app.send("dan")
        assert (rejected.status, rejected.reason) == (429, "DeskBusy")
        assert rejected.text.startswith("the desk already has 3 write requests running or waiting")
        started += [await app.start(caller, "/stream", "GET") for caller in ("ann", "bob")]
        assert (await app.send("dan", "/stream", "GET")).text.startswith("the desk already has 2 streams running")
        assert (await app.send("dan", "/read", "GET")).text == "read"
        app.handlers.finish.set()
        assert [each.status for each in await asyncio.gather(*started)] == [200] * 5


async def test_request_that_waits_for_delivery_occupies_no_slot() -> None:
    async with limited_app(Limits(writes=ONE_AT_A_TIME)) as app:
        started = [await app.start(caller, "/write-and-wait") for caller in ("ann", "bob", "cay", "dan", "eve")]
        for _ in started:
            await app.handlers.started.get()
        app.handlers.finish.set()
        assert [each.status for each in await asyncio.gather(*started)] == [200] * 5


async def test_disconnected_client_cancels_a_waiting_write_and_not_a_running_one() -> None:
    async with limited_app(Limits(writes=ONE_AT_A_TIME)) as app:
        running, waiting = await app.start("ann"), await app.start("bob")
        assert await app.handlers.started.get() == "ann"
        for task in (running, waiting):
            task.cancel()
        await asyncio.wait([running, waiting])
        while app.handlers.requests["bob"].transport:  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0.01)
        last = await app.start("cay")
        app.handlers.finish.set()
        assert (await last).status == 200
        assert app.handlers.finished == ["ann", "cay"]


async def test_slow_body_delays_no_other_request_and_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_settings, "BODY_TIMEOUT_S", 0.2)
    never = asyncio.Event()

    async def slow_body() -> AsyncGenerator[bytes]:
        yield b"a"
        await never.wait()

    async with limited_app(Limits(writes=ONE_AT_A_TIME)) as app:
        slow = await app.start("eve", method="POST", body=slow_body())
        app.handlers.finish.set()
        assert (await app.send("ann", method="POST", body=b"all")).text == "3"
        try:
            outcome = await slow
        finally:
            never.set()
        assert (outcome.status, outcome.reason) == (408, "RequestTimeout")
        large = await app.send("ann", method="POST", body=b"x" * 100_001)
        assert (large.status, large.reason) == (422, "DocumentInvalid")
        assert app.handlers.finished == ["ann"]


async def test_rate_limit_is_for_each_client() -> None:
    async with limited_app(Limits(rate=2)) as app:
        outcomes = [await app.send("ann", "/read", "GET") for _ in range(12)]
        assert [each.status for each in outcomes] == [200] * 10 + [429] * 2
        assert (outcomes[-1].reason, outcomes[-1].retry_after) == ("TooManyRequests", "1")
        assert outcomes[-1].text == "you send more than 2 requests per second"
        assert (await app.send("bob", "/read", "GET")).status == 200


@pytest.mark.parametrize(
    ("retry_after", "status", "sent"), [(["2", "3"], 200, 3), (["2"] * 9, 429, 3), (["60"], 429, 1)]
)
async def test_cli_retries_after_the_told_delay(
    retry_after: list[str], status: int, sent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    received: list[tuple[str, bytes]] = []
    clock = StoppedClock()

    async def busy(request: web.Request) -> web.Response:
        received.append((request.headers["Idempotency-Key"], await request.read()))
        index = len(received) - 1
        if index < len(retry_after):
            return web.Response(status=429, headers={"Retry-After": retry_after[index]})
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/", busy)])
    middlewares = (retry_middleware(RetryPolicy(clock, lambda: 0.5)),)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession(middlewares=middlewares, headers={"Idempotency-Key": "k"}) as session,
        session.post(server.make_url("/"), data=b"it") as response,
    ):
        assert response.status == status
    assert received == [("k", b"it")] * sent
    waits_s = [float(each) * 1.125 for each in retry_after[: sent - 1]]
    assert clock.slept_s == waits_s
    assert capsys.readouterr().err == "".join(f"the desk is busy: retrying in {each:.0f} s\n" for each in waits_s)


async def test_cli_does_not_multiply_the_load() -> None:
    """It retries a tenth of its requests, and a few more."""
    count, clock = 0, StoppedClock()

    async def busy(_: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.Response(status=429, headers={"Retry-After": "1"})

    app = web.Application()
    app.add_routes([web.get("/", busy)])
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession(middlewares=(retry_middleware(RetryPolicy(clock)),)) as session,
    ):
        for _ in range(100):
            async with session.get(server.make_url("/")) as response:
                assert response.status == 429
    assert count <= 100 + 10 + 4
