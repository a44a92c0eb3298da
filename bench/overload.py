"""A desk that is asked three times what it can do: beside its own pace before, and for whom."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.control_plane import ControlPlane

from bench.cores import SERVERS, on
from bench.desk import BOUNDED, FILE, SUBMISSIONS, Desk, desk_before
from bench.figures import Figure
from bench.plane import bare_plane
from pincompute.api.names import DESK, HAND
from pincompute.base.clock import SystemClock
from pincompute.cli.asking import Answer, Asker, Unanswered
from pincompute.cli.come_back import ComeBack
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICE_ACCOUNTS

KEEPS, FLOODS, LOOKS = ("ann", "ben", "cay"), "flood", "eve"
SHARE = 0.2
"""Of what the desk can do, that each of those asks who keep within it; the flood asks for the rest of three times."""
OFFERED = 3.0
READS = 20.0
"""A second."""
SECONDS = 5.0
STALL = 30.0
"""Seconds for which it does nothing at all, in the midst of as much as can be."""
AT_ONCE = 16
RUNS, STALLS = 5, 3


def figures() -> list[Figure]:
    with on(SERVERS), bare_plane(durable=True) as (plane, folder):
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
        there = 0

        async def over(phase: Awaitable[Phase]) -> Phase:
            nonlocal there
            found = await phase
            there += found.taken
            await desk.delivered(hand, there)
            return found

        # The first is before anything has come to its pace.
        calm = [await over(_calm(people, run)) for run in range(2)][1:]
        flooded: list[Phase] = []
        for run in range(RUNS):
            flooded.append(await over(_flooded(people, f"f{run}", calm[-1].rate, SECONDS)))
            calm.append(await over(_calm(people, run + 2)))
        stalled = [await over(_stalled(people, desk, run, calm[-1].rate)) for run in range(STALLS)]
    # How fast a machine is drifts within seconds: a flood is held against what was before it and what came after.
    beside = [(*around, flood) for around, flood in zip(pairwise(calm), flooded, strict=True)]
    return [
        Figure(
            "overload.work", f"taken a second where {OFFERED:g} times as many are sent : as many as can be",
            [flood.rate * 2 / (a.rate + b.rate) for a, b, flood in beside], 0.9, "x",
            statistics.median(each.rate for each in flooded), statistics.median(each.rate for each in calm),
            at_least=True,
        ),
        Figure(
            "overload.refusal", "processor time of the desk for one that it sends away, beside that for those it takes",
            [(flood.desk - flood.rate * _of_one(a, b)) / flood.refused * 1000 for a, b, flood in beside], unit="ms",
        ),
        Figure("overload.sent", "the same: requests sent : needed", _sent(flooded), 1.3, "x"),
        Figure(
            "R12", f"and where nobody is answered for {STALL:g} s: requests sent : needed", _sent(stalled), 1.3, "x",
        ),
        Figure(
            "overload.kept", "the same: of those who keep within their share, as much is taken",
            [each.kept for each in flooded], 0.99, "x", at_least=True,
        ),
        Figure(
            "overload.p99", "the same: P99 of theirs : where as many are sent as can be",
            [flood.p99 * 2 / (a.p99 + b.p99) for a, b, flood in beside], None, "x",
            statistics.median(each.p99 for each in flooded), statistics.median(each.p99 for each in calm),
        ),
        Figure(
            "overload.reads", "the same: P99 of reads beside it : where as many are sent as can be",
            [flood.reads * 2 / (a.reads + b.reads) for a, b, flood in beside], None, "x",
            statistics.median(each.reads for each in flooded), statistics.median(each.reads for each in calm),
        ),
    ]  # fmt: skip


def _of_one(before: Phase, after: Phase) -> float:
    """Seconds of processors for one that is taken."""
    return (before.desk / before.rate + after.desk / after.rate) / 2


def _sent(phases: Iterable[Phase]) -> list[float]:
    return [each.sent / each.needed for each in phases]


class Phase(NamedTuple):
    rate: float
    """Taken a second."""
    taken: int
    refused: float
    """A second."""
    desk: float
    """Seconds of processors a second."""
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
        self.desk = desk
        self.sent = self.needed = self.taken = self.refused = 0
        self.took: list[float] = []
        self.asker = Asker(desk.address, {"Authorization": f"Bearer {token}", "Prefer": "respond-async"})

    def forget(self) -> None:
        self.sent = self.needed = self.taken = self.refused = 0
        self.took = []

    async def submit(self, name: str) -> None:
        """By a command of its own, as each of the many would: what it may send again is counted for itself."""
        self.needed += 1
        began = time.perf_counter()
        send = partial(self._sent, FILE.replace("NAME", name).encode())
        # Whom a desk that stands still never heard is told so, and sends nothing again unasked.
        with contextlib.suppress(Unanswered):
            answer = await ComeBack(SystemClock()).heard(send, self.asker.pass_over)
            try:
                said = await answer.read()
            finally:
                await self.asker.let_go(answer)
            if answer.status in {201, 202}:
                self.taken += 1
                self.took.append(time.perf_counter() - began)
            elif answer.status != 429:
                raise AssertionError(said)

    async def _sent(self, document: bytes) -> Answer:
        self.sent += 1
        answer = await self.asker.send("POST", SUBMISSIONS, document)
        self.refused += answer.status == 429
        return answer

    async def look(self, name: str) -> None:
        began = time.perf_counter()
        with contextlib.suppress(Unanswered):
            async with self.asker.ask("GET", f"/v1/projects/{BOUNDED}/workloads/{name}") as answer:
                said = await answer.read()
                if answer.status not in {200, 429}:
                    raise AssertionError(said)
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
            await stack.enter_async_context(person.asker)
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
    return await _phase(
        people, SECONDS, *(one(each, hand) for each in writers for hand in range(AT_ONCE // len(writers)))
    )


async def _stalled(people: dict[str, Person], desk: Desk, run: int, rate: float) -> Phase:
    """As many go on to come while nobody is answered."""

    async def stands() -> None:
        os.kill(desk.process, signal.SIGSTOP)
        try:
            await asyncio.sleep(STALL)
        finally:
            os.kill(desk.process, signal.SIGCONT)

    return await _flooded(people, f"s{run}", rate, STALL + SECONDS, stands())


async def _flooded(people: dict[str, Person], name: str, rate: float, seconds: float, *work: Awaitable[None]) -> Phase:
    """At a pace that asks nobody, as the many behind each of them would."""
    offers = [(people[each], SHARE * rate) for each in KEEPS]
    offers.append((people[FLOODS], (OFFERED - SHARE * len(KEEPS)) * rate))

    def submits(person: Person) -> Callable[[int], Awaitable[None]]:
        return lambda number: person.submit(f"{name}-{person.name}-{number}")

    return await _phase(people, seconds, *work, *(_offered(pace, seconds, submits(person)) for person, pace in offers))


async def _phase(people: dict[str, Person], seconds: float, *work: Awaitable[None]) -> Phase:
    for each in people.values():
        each.forget()
    writers = [people[each] for each in (*KEEPS, FLOODS)]
    looks = people[LOOKS]
    desk = looks.desk
    began, worked = time.perf_counter(), desk.worked()
    ends = asyncio.create_task(asyncio.sleep(seconds))
    with contextlib.redirect_stderr(io.StringIO()):
        working = asyncio.gather(*work, _offered(READS, seconds, lambda _: looks.look("first")))
        await ends
        within, took = sum(each.taken for each in writers), time.perf_counter() - began
        refused = sum(each.refused for each in writers)
        worked = desk.worked() - worked
        await working
    keep = [people[each] for each in KEEPS]
    waits = [second for each in keep for second in each.took]
    return Phase(
        within / took,
        sum(each.taken for each in writers),
        refused / took,
        worked / took,
        sum(each.sent for each in writers),
        sum(each.needed for each in writers),
        sum(each.taken for each in keep) / sum(each.needed for each in keep),
        statistics.quantiles(waits, n=100)[98],
        statistics.quantiles(looks.took, n=100)[98],
    )


async def _offered(rate: float, seconds: float, work: Callable[[int], Awaitable[None]]) -> None:
    """So many a second, whether or not those before them were answered."""
    began = time.perf_counter()
    asked: list[asyncio.Future[None]] = []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(began + number / rate - time.perf_counter())
        asked.append(asyncio.ensure_future(work(number)))
    await asyncio.gather(*asked)
