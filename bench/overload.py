"""A desk that is asked three times what it can do: beside its own pace before, and for whom."""

from __future__ import annotations

import asyncio
import contextlib
import io
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
from tests.control_plane import ControlPlane

from bench.desk import BOUNDED, FILE, Desk, desk_before
from bench.figures import Figure
from bench.plane import bare_plane
from pincompute.api.names import DESK, HAND
from pincompute.base.clock import SystemClock
from pincompute.cli.come_back import come_back
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICE_ACCOUNTS

KEEPS, FLOODS, LOOKS = ("ann", "ben", "cay"), "flood", "eve"
SHARE = 0.2
"""Of what the desk can do, that each of those asks who keep within it; the flood asks for the rest of three times."""
OFFERED = 3.0
READS = 20.0
"""A second."""
SECONDS = 5.0
AT_ONCE = 16
RUNS = 3


def figures() -> list[Figure]:
    with bare_plane() as (plane, folder):
        return asyncio.run(_measured(plane, folder))


async def _measured(plane: ControlPlane, folder: Path) -> list[Figure]:
    members = {"deployer": {"programs": [*KEEPS, FLOODS]}, "viewer": {"programs": [LOOKS]}}
    # What bounds one client alone would spare the desk the flood.
    options = ("--rate", "0")
    async with (
        Client(plane.access(), "bench") as hand,
        desk_before(plane, folder, hand, *options, members=members) as desk,
        _people(hand, desk) as people,
    ):
        runs: list[tuple[Phase, Phase]] = []
        there = 0
        for run in range(RUNS + 1):
            calm = await _calm(people, run)
            there += calm.taken
            await desk.delivered(hand, there)
            flooded = await _flooded(people, run, calm.rate)
            there += flooded.taken
            await desk.delivered(hand, there)
            runs.append((calm, flooded))
    calm, flooded = zip(*runs[1:], strict=True)
    return [
        Figure(
            "overload.work", f"taken a second where {OFFERED:g} times as many are sent : as many as can be",
            [b.rate / a.rate for a, b in runs[1:]], 0.9, "x",
            statistics.median(each.rate for each in flooded), statistics.median(each.rate for each in calm),
            at_least=True,
        ),
        Figure("R12", "the same: requests sent : needed", [each.sent / each.needed for each in flooded], 1.3, "x"),
        Figure(
            "overload.kept", "the same: of those who keep within their share, as much is taken",
            [each.kept for each in flooded], 0.99, "x", at_least=True,
        ),
        Figure(
            "overload.p99", "the same: P99 of theirs : where as many are sent as can be",
            [b.p99 / a.p99 for a, b in runs[1:]], None, "x",
            statistics.median(each.p99 for each in flooded), statistics.median(each.p99 for each in calm),
        ),
        Figure(
            "overload.reads", "the same: P99 of reads beside it : where as many are sent as can be",
            [b.reads / a.reads for a, b in runs[1:]], None, "x",
            statistics.median(each.reads for each in flooded), statistics.median(each.reads for each in calm),
        ),
    ]  # fmt: skip


class Phase(NamedTuple):
    rate: float
    """Taken a second."""
    taken: int
    sent: int
    needed: int
    kept: float
    """Of what was asked by those who keep within their share."""
    p99: float
    reads: float
    """P99 of them."""


class Person:
    """Who asks by a hand: it comes back when it is told to."""

    def __init__(self, name: str, token: str, desk: Desk) -> None:
        self.name = name
        self._desk = desk
        self.sent = self.needed = self.taken = 0
        self.took: list[float] = []
        middlewares = (come_back(SystemClock()), self._counted)
        headers = {"Authorization": f"Bearer {token}", "Prefer": "respond-async"}
        connector = aiohttp.TCPConnector(limit=0)
        self.session = aiohttp.ClientSession(connector=connector, headers=headers, middlewares=middlewares)

    def forget(self) -> None:
        self.sent = self.needed = self.taken = 0
        self.took = []

    async def _counted(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        self.sent += 1
        return await send(request)

    async def submit(self, name: str) -> None:
        self.needed += 1
        began = time.perf_counter()
        async with self.session.post(f"{self._desk.url}/submissions", data=FILE.replace("NAME", name)) as answer:
            if answer.status in {201, 202}:
                self.taken += 1
                self.took.append(time.perf_counter() - began)
            elif answer.status != 429:
                raise AssertionError(await answer.text())

    async def look(self, name: str) -> None:
        began = time.perf_counter()
        async with self.session.get(f"{self._desk.url}/workloads/{name}") as answer:
            if answer.status not in {200, 429}:
                raise AssertionError(await answer.text())
            if answer.status == 200:
                self.took.append(time.perf_counter() - began)


@asynccontextmanager
async def _people(hand: Client, desk: Desk) -> AsyncGenerator[dict[str, Person]]:
    """Programs with an account each."""
    async with contextlib.AsyncExitStack() as stack:
        people = {}
        for name in (*KEEPS, FLOODS, LOOKS):
            await hand.create(SERVICE_ACCOUNTS, {"metadata": {"name": name, "namespace": BOUNDED}}, manager=HAND)
            path = f"/api/v1/namespaces/{BOUNDED}/serviceaccounts/{name}/token"
            asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [DESK]}}
            answer = await hand.raw("POST", path, body=msgspec.json.encode(asked))
            person = Person(name, msgspec.json.decode(answer)["status"]["token"], desk)
            people[name] = person
            stack.push_async_callback(person.session.close)
        await desk.submit("first")
        await desk.delivered(hand, 1)
        yield people


async def _calm(people: dict[str, Person], run: int) -> Phase:
    """As much as it can: each has so many at once, and sends the next when one is taken."""
    writers = [people[each] for each in (*KEEPS, FLOODS)]

    async def one(person: Person, hand: int) -> None:
        number = 0
        while time.perf_counter() < ends:
            await person.submit(f"c{run}-{person.name}-{hand}-{number}")
            number += 1

    ends = time.perf_counter() + SECONDS
    return await _phase(people, *(one(each, hand) for each in writers for hand in range(AT_ONCE // len(writers))))


async def _flooded(people: dict[str, Person], run: int, rate: float) -> Phase:
    """At a pace that asks nobody, as the many behind each of them would."""
    offers = [(people[each], SHARE * rate) for each in KEEPS]
    offers.append((people[FLOODS], (OFFERED - SHARE * len(KEEPS)) * rate))

    def submits(person: Person) -> Callable[[int], Awaitable[None]]:
        return lambda number: person.submit(f"f{run}-{person.name}-{number}")

    return await _phase(people, *(_offered(pace, submits(person)) for person, pace in offers))


async def _phase(people: dict[str, Person], *work: Awaitable[None]) -> Phase:
    for each in people.values():
        each.forget()
    writers = [people[each] for each in (*KEEPS, FLOODS)]
    looks = people[LOOKS]
    began = time.perf_counter()
    ends = asyncio.create_task(asyncio.sleep(SECONDS))
    with contextlib.redirect_stderr(io.StringIO()):
        working = asyncio.gather(*work, _offered(READS, lambda _: looks.look("first")))
        await ends
        within, seconds = sum(each.taken for each in writers), time.perf_counter() - began
        await working
    keep = [people[each] for each in KEEPS]
    took = [second for each in keep for second in each.took]
    return Phase(
        within / seconds,
        sum(each.taken for each in writers),
        sum(each.sent for each in writers),
        sum(each.needed for each in writers),
        sum(each.taken for each in keep) / sum(each.needed for each in keep),
        statistics.quantiles(took, n=100)[98],
        statistics.quantiles(looks.took, n=100)[98],
    )


async def _offered(rate: float, work: Callable[[int], Awaitable[None]]) -> None:
    """So many a second, whether or not those before them were answered."""
    began = time.perf_counter()
    asked: list[asyncio.Future[None]] = []
    for number in range(int(rate * SECONDS)):
        await asyncio.sleep(began + number / rate - time.perf_counter())
        asked.append(asyncio.ensure_future(work(number)))
    await asyncio.gather(*asked)
