"""Leases against a real API server: one holds it, the next takes over when it may, and two never hold it at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from control_plane import ControlPlane
from forwarder import Forwarder
from leases import PATIENCE, holders
from pincompute.kube.client import Client
from pincompute.kube.lease import Lease, Terms
from pincompute.kube.resource import LEASES
from pincompute.kube.transport import Limits

pytestmark = pytest.mark.cluster

QUICK = Terms(lasts=3, renewed=0.6, given_up=2.2)


def lease(client: Client, namespace: str, holder: str) -> Lease:
    return Lease(client, namespace, "test", holder, QUICK)


@asynccontextmanager
async def task(work: Coroutine[Any, Any, None]) -> AsyncGenerator[asyncio.Task[None]]:
    running = asyncio.create_task(work)
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_one_holds_it_and_the_next_waits_until_it_is_let_go(client: Client, namespace: str) -> None:
    first, second = lease(client, namespace, "a"), lease(client, namespace, "b")
    await first.acquire()
    async with task(first.keep()) as keeping, task(second.acquire()) as waiting:
        # Longer than it lasts unless it is renewed.
        await asyncio.wait({waiting}, timeout=QUICK.lasts * 1.5)
        assert (first.held, second.held) == (True, False)
        async with holders(client, namespace, "test") as seen:
            keeping.cancel()
            await first.release()
            async with asyncio.timeout(PATIENCE):
                await waiting
            assert (first.held, second.held) == (False, True)
        # It was let go, and did not run out.
        assert seen == ["a", "", "b"]


async def test_who_is_not_heard_any_more_is_followed_and_has_stopped_by_then(
    plane: ControlPlane, client: Client, namespace: str, forwarder: Forwarder
) -> None:
    limits = Limits(connect=0.5, whole=0.5)
    async with Client(plane.access(port=forwarder.port), agent="test", limits=limits) as cut_off:
        first, second = lease(cut_off, namespace, "a"), lease(client, namespace, "b")

        async def follow() -> None:
            await second.acquire()
            assert not first.held

        await first.acquire()
        async with task(first.keep()) as keeping, task(follow()) as waiting:
            await forwarder.cut()
            async with asyncio.timeout(PATIENCE):
                await keeping
                await waiting
        assert (first.held, second.held) == (False, True)


async def test_who_begins_anew_by_the_same_name_does_not_wait_for_itself(client: Client, namespace: str) -> None:
    long = QUICK._replace(lasts=2 * PATIENCE, given_up=PATIENCE)
    for _ in range(2):
        async with asyncio.timeout(PATIENCE):
            await Lease(client, namespace, "test", "a", long).acquire()


async def test_a_lease_that_was_taken_away_is_lost(client: Client, namespace: str) -> None:
    first = lease(client, namespace, "a")
    await first.acquire()
    body = {"spec": {"holderIdentity": "b"}}
    await client.patch(LEASES, "test", namespace, body, style="merge", manager="somebody")
    async with asyncio.timeout(PATIENCE):
        await first.keep()
    assert not first.held
    assert (await client.get(LEASES, "test", namespace))["spec"]["holderIdentity"] == "b"


async def test_a_lease_that_somebody_annotated_is_kept(client: Client, namespace: str) -> None:
    first = lease(client, namespace, "a")
    await first.acquire()
    body = {"metadata": {"annotations": {"a": "b"}}}
    await client.patch(LEASES, "test", namespace, body, style="merge", manager="somebody")
    async with task(first.keep()) as keeping:
        await asyncio.wait({keeping}, timeout=QUICK.lasts)
        assert first.held
