"""Leases against a real API server: takeover after release or expiry, and never two holders at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from control_plane import ControlPlane
from lease_holders import LEASE_TIMEOUT_S, watch_holders
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease, LeaseTimings
from pincompute.kube.resource import LEASES
from pincompute.kube.transport import ClientLimits
from tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.cluster

SHORT_TIMINGS = LeaseTimings(duration_s=3, renew_interval_s=0.6, renew_deadline_s=2.2)


def lease(client: Client, namespace: str, holder: str) -> Lease:
    return Lease(client, namespace, "test", holder, SHORT_TIMINGS)


@asynccontextmanager
async def task(work: Coroutine[Any, Any, None]) -> AsyncGenerator[asyncio.Task[None]]:
    running = asyncio.create_task(work)
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_second_acquires_after_release(client: Client, namespace: str) -> None:
    first, second = lease(client, namespace, "a"), lease(client, namespace, "b")
    await first.acquire()
    async with task(first.renew_until_lost()) as renewing, task(second.acquire()) as waiting:
        # Longer than the lease lasts without renewal.
        await asyncio.wait({waiting}, timeout=SHORT_TIMINGS.duration_s * 1.5)
        assert (first.held, second.held) == (True, False)
        async with watch_holders(client, namespace, "test") as seen:
            renewing.cancel()
            await first.release()
            async with asyncio.timeout(LEASE_TIMEOUT_S):
                await waiting
            assert (first.held, second.held) == (False, True)
        # The lease was released and did not expire.
        assert seen == ["a", "", "b"]


async def test_cut_off_holder_stops_before_takeover(
    plane: ControlPlane, client: Client, namespace: str, forwarder: TcpForwarder
) -> None:
    limits = ClientLimits(connect_timeout_s=0.5, request_timeout_s=0.5)
    async with Client(plane.access(port=forwarder.port), agent="test", limits=limits) as cut_off:
        first, second = lease(cut_off, namespace, "a"), lease(client, namespace, "b")

        async def acquire_second() -> None:
            await second.acquire()
            assert not first.held

        await first.acquire()
        async with task(first.renew_until_lost()) as renewing, task(acquire_second()) as waiting:
            await forwarder.cut()
            async with asyncio.timeout(LEASE_TIMEOUT_S):
                await renewing
                await waiting
        assert (first.held, second.held) == (False, True)


async def test_restarted_holder_acquires_own_lease_at_once(client: Client, namespace: str) -> None:
    long = SHORT_TIMINGS._replace(duration_s=2 * LEASE_TIMEOUT_S, renew_deadline_s=LEASE_TIMEOUT_S)
    for _ in range(2):
        async with asyncio.timeout(LEASE_TIMEOUT_S):
            await Lease(client, namespace, "test", "a", long).acquire()


async def test_lease_taken_by_another_holder_is_lost(client: Client, namespace: str) -> None:
    first = lease(client, namespace, "a")
    await first.acquire()
    body = {"spec": {"holderIdentity": "b"}}
    await client.patch(LEASES, "test", namespace, body, style="merge", manager="another-client")
    async with asyncio.timeout(LEASE_TIMEOUT_S):
        await first.renew_until_lost()
    assert not first.held
    assert (await client.get(LEASES, "test", namespace))["spec"]["holderIdentity"] == "b"


async def test_annotating_lease_does_not_lose_it(client: Client, namespace: str) -> None:
    first = lease(client, namespace, "a")
    await first.acquire()
    body = {"metadata": {"annotations": {"a": "b"}}}
    await client.patch(LEASES, "test", namespace, body, style="merge", manager="another-client")
    async with task(first.renew_until_lost()) as renewing:
        await asyncio.wait({renewing}, timeout=SHORT_TIMINGS.duration_s)
        assert first.held
