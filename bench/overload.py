"""A desk under three times its capacity: throughput, fairness and retries, compared with normal load."""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
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
from tests.support.control_plane import ControlPlane

from bench.cpu_affinity import SERVER_CPUS, pinned_to
from bench.desk import DOCUMENT, QUOTA_PROJECT, SUBMISSIONS, Desk, running_desk
from bench.empty_control_plane import empty_control_plane
from bench.figures import Figure
from pincompute.api.names import CLI_MANAGER, DESK
from pincompute.base.clock import SystemClock
from pincompute.cli.http_client import HttpClient, HttpResponse, TransportError
from pincompute.cli.retry import RetryPolicy
from pincompute.kube.client import Client
from pincompute.kube.resource import SERVICE_ACCOUNTS

FAIR_CLIENTS, FLOODING_CLIENT, READING_CLIENT = ("ann", "ben", "cay"), "flood", "eve"
FAIR_SHARE = 0.2
"""Share of the desk's capacity that each fair client requests; the flooding client requests the rest of three times."""
OVERLOAD_FACTOR = 3.0
READS_PER_S = 20.0
"""Reads per second."""
PHASE_S = 5.0
STALL_S = 30.0
"""Seconds for which the desk is stopped under full load."""
CONCURRENCY = 16
RUNS, STALLS = 5, 3


def figures() -> list[Figure]:
    with pinned_to(SERVER_CPUS), empty_control_plane(durable=True) as (plane, folder):
        return asyncio.run(_run_phases(plane, folder))


async def _run_phases(plane: ControlPlane, folder: Path) -> list[Figure]:
    members = {"deployer": {"programs": [*FAIR_CLIENTS, FLOODING_CLIENT]}, "viewer": {"programs": [READING_CLIENT]}}
    # No rate limit per client: it would fair the flood away from the desk.
    options = ("--rate", "0")
    async with (
        Client(plane.access(), "bench") as client,
        running_desk(plane, folder, client, *options, members=members) as desk,
        _users(client, desk) as users,
    ):
        total_accepted = 0

        async def complete(phase: Awaitable[Phase]) -> Phase:
            nonlocal total_accepted
            found = await phase
            total_accepted += found.accepted
            await desk.delivered(client, total_accepted)
            return found

        # The first run is a warm-up.
        at_capacity = [await complete(_at_capacity(users, run)) for run in range(2)][1:]
        flooded: list[Phase] = []
        for run in range(RUNS):
            flooded.append(await complete(_flooded(users, f"f{run}", at_capacity[-1].rate, PHASE_S)))
            at_capacity.append(await complete(_at_capacity(users, run + 2)))
        stalled = [await complete(_stalled(users, desk, run, at_capacity[-1].rate)) for run in range(STALLS)]
    # The machine's speed drifts within seconds: each flood is compared with the phases before and after it.
    compared = [(*around, flood) for around, flood in zip(pairwise(at_capacity), flooded, strict=True)]
    return [
        Figure(
            "overload.work", f"accepted per second at {OVERLOAD_FACTOR:g} times the capacity : at capacity",
            [flood.rate * 2 / (a.rate + b.rate) for a, b, flood in compared], 0.9, "x",
            statistics.median(each.rate for each in flooded), statistics.median(each.rate for each in at_capacity),
            higher_is_better=True,
        ),
        Figure(
            "overload.refusal", "processor time of the desk per rejected request",
            [
                (flood.desk - flood.rate * _seconds_per_accepted(a, b)) / flood.rejected * 1000
                for a, b, flood in compared
            ],
            unit="ms",
        ),
        Figure("overload.sent", "the same: requests sent : needed", _sent_ratio(flooded), 1.3, "x"),
        Figure(
            "R12", f"after the desk is stopped for {STALL_S:g} s: requests sent : needed", _sent_ratio(stalled), 1.3,
            "x",
        ),
        Figure(
            "R12.reads", "the same: share of the reads that are answered, the time of the stop included",
            [each.reads_answered for each in stalled], None, "x", higher_is_better=True,
        ),
        Figure(
            "overload.kept", "overload: share of the fair clients' requests that is accepted",
            [each.fair_share_accepted for each in flooded], 0.99, "x", higher_is_better=True,
        ),
        Figure(
            "overload.p99", "overload: P99 of the fair clients : at capacity",
            [flood.p99 * 2 / (a.p99 + b.p99) for a, b, flood in compared], None, "x",
            statistics.median(each.p99 for each in flooded), statistics.median(each.p99 for each in at_capacity),
        ),
        Figure(
            "overload.reads", "overload: P99 of reads : at capacity",
            [flood.reads * 2 / (a.reads + b.reads) for a, b, flood in compared], None, "x",
            statistics.median(each.reads for each in flooded), statistics.median(each.reads for each in at_capacity),
        ),
    ]  # fmt: skip


def _seconds_per_accepted(before: Phase, after: Phase) -> float:
    """Processor seconds per accepted request."""
    return (before.desk / before.rate + after.desk / after.rate) / 2


def _sent_ratio(phases: Iterable[Phase]) -> list[float]:
    return [each.sent / each.needed for each in phases]


class Phase(NamedTuple):
    rate: float
    """Accepted requests per second."""
    accepted: int
    rejected: float
    """Rejected requests per second."""
    desk: float
    """Processor seconds of the desk per second."""
    sent: int
    needed: int
    fair_share_accepted: float
    """Share of the fair clients' requests that was accepted."""
    p99: float
    reads: float
    """P99 of the reads."""
    reads_answered: float
    """Share of the reads that got their answer. The others were rejected, or found no connection."""


class User:
    """A user with the CLI's HTTP client, which retries as the server asks."""

    def __init__(self, name: str, token: str, desk: Desk) -> None:
        self.name = name
        self.desk = desk
        self.sent = self.needed = self.accepted = self.rejected = 0
        self.durations: list[float] = []
        self.http_client = HttpClient(desk.address, {"Authorization": f"Bearer {token}", "Prefer": "respond-async"})

    def reset(self) -> None:
        self.sent = self.needed = self.accepted = self.rejected = 0
        self.durations = []

    async def submit(self, name: str) -> None:
        """Submits as a separate command would: with its own retry budget."""
        self.needed += 1
        began = time.perf_counter()
        send = partial(self._send, DOCUMENT.replace("NAME", name).encode())
        # A client that gets no response from a stopped desk reports that and does not retry.
        with contextlib.suppress(TransportError):
            response = await RetryPolicy(SystemClock()).send_with_retry(send, self.http_client.discard)
            try:
                body = await response.read()
            finally:
                await self.http_client.release(response)
            if response.status in {201, 202}:
                self.accepted += 1
                self.durations.append(time.perf_counter() - began)
            elif response.status != 429:
                raise AssertionError(body)

    async def _send(self, document: bytes) -> HttpResponse:
        self.sent += 1
        response = await self.http_client.send("POST", SUBMISSIONS, document)
        self.rejected += response.status == 429
        return response

    async def read(self, name: str) -> None:
        began = time.perf_counter()
        with contextlib.suppress(TransportError):
            async with self.http_client.request("GET", f"/v1/projects/{QUOTA_PROJECT}/workloads/{name}") as response:
                body = await response.read()
                if response.status not in {200, 429}:
                    raise AssertionError(body)
                if response.status == 200:
                    self.durations.append(time.perf_counter() - began)


@asynccontextmanager
async def _users(client: Client, desk: Desk) -> AsyncGenerator[dict[str, User]]:
    """Programs, each with its own service account."""
    async with contextlib.AsyncExitStack() as stack:
        users = {}
        for name in (*FAIR_CLIENTS, FLOODING_CLIENT, READING_CLIENT):
            await client.create(
                SERVICE_ACCOUNTS, {"metadata": {"name": name, "namespace": QUOTA_PROJECT}}, manager=CLI_MANAGER
            )
            path = f"/api/v1/namespaces/{QUOTA_PROJECT}/serviceaccounts/{name}/token"
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [DESK]}}
            response = await client.raw("POST", path, body=msgspec.json.encode(request))
            user = User(name, msgspec.json.decode(response)["status"]["token"], desk)
            users[name] = user
            await stack.enter_async_context(user.http_client)
        await desk.submit("first")
        await desk.delivered(client, 1)
        yield users


async def _at_capacity(users: dict[str, User], run: int) -> Phase:
    """Load at capacity: each client has a fixed number of open requests, and sends the next when one is accepted."""
    writers = [users[each] for each in (*FAIR_CLIENTS, FLOODING_CLIENT)]

    async def submit_repeatedly(user: User, client: int) -> None:
        number = 0
        while time.perf_counter() < ends:
            await user.submit(f"c{run}-{user.name}-{client}-{number}")
            number += 1

    ends = time.perf_counter() + PHASE_S
    return await _phase(
        users,
        PHASE_S,
        *(submit_repeatedly(each, client) for each in writers for client in range(CONCURRENCY // len(writers))),
    )


async def _stalled(users: dict[str, User], desk: Desk, run: int, rate: float) -> Phase:
    """The load continues while the desk is stopped."""

    async def stop_desk() -> None:
        os.kill(desk.process, signal.SIGSTOP)
        try:
            await asyncio.sleep(STALL_S)
        finally:
            os.kill(desk.process, signal.SIGCONT)

    return await _flooded(users, f"s{run}", rate, STALL_S + PHASE_S, stop_desk())


async def _flooded(users: dict[str, User], name: str, rate: float, seconds: float, *work: Awaitable[None]) -> Phase:
    """Load at a fixed rate, independent of responses, as from many users behind each client."""
    offers = [(users[each], FAIR_SHARE * rate) for each in FAIR_CLIENTS]
    offers.append((users[FLOODING_CLIENT], (OVERLOAD_FACTOR - FAIR_SHARE * len(FAIR_CLIENTS)) * rate))

    def submits(user: User) -> Callable[[int], Awaitable[None]]:
        return lambda number: user.submit(f"{name}-{user.name}-{number}")

    return await _phase(
        users, seconds, *work, *(_at_fixed_rate(rate_, seconds, submits(user)) for user, rate_ in offers)
    )


async def _phase(users: dict[str, User], seconds: float, *work: Awaitable[None]) -> Phase:
    for user in users.values():
        user.reset()
    writers = [users[each] for each in (*FAIR_CLIENTS, FLOODING_CLIENT)]
    reader = users[READING_CLIENT]
    desk = reader.desk
    began, worked = time.perf_counter(), desk.worked()
    ends = asyncio.create_task(asyncio.sleep(seconds))
    with contextlib.redirect_stderr(io.StringIO()):
        working = asyncio.gather(*work, _at_fixed_rate(READS_PER_S, seconds, lambda _: reader.read("first")))
        await ends
        within, took = sum(each.accepted for each in writers), time.perf_counter() - began
        rejected = sum(each.rejected for each in writers)
        worked = desk.worked() - worked
        await working
    fair = [users[each] for each in FAIR_CLIENTS]
    waits = [second for each in fair for second in each.durations]
    return Phase(
        within / took,
        sum(each.accepted for each in writers),
        rejected / took,
        worked / took,
        sum(each.sent for each in writers),
        sum(each.needed for each in writers),
        sum(each.accepted for each in fair) / sum(each.needed for each in fair),
        _p99(waits),
        _p99(reader.durations),
        len(reader.durations) / int(READS_PER_S * seconds),
    )


def _p99(durations: list[float]) -> float:
    return statistics.quantiles(durations, n=100)[98] if len(durations) > 1 else math.inf


async def _at_fixed_rate(rate: float, seconds: float, work: Callable[[int], Awaitable[None]]) -> None:
    """Starts work at a fixed rate, whether or not earlier work has finished."""
    began = time.perf_counter()
    started: list[asyncio.Future[None]] = []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(began + number / rate - time.perf_counter())
        started.append(asyncio.ensure_future(work(number)))
    await asyncio.gather(*started)
