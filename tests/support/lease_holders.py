"""Watches the holder of a lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from pincompute.kube.client import Client
from pincompute.kube.resource import LEASES, Object

LEASE_TIMEOUT_S = 60.0


@asynccontextmanager
async def watch_holders(client: Client, namespace: str, name: str) -> AsyncGenerator[list[str]]:
    """Collects the successive holders of a lease until the block ends; an empty name means that it was released."""
    holders: list[str] = []
    changed = asyncio.Event()

    async def collect() -> None:
        async with aclosing(client.watch(LEASES, namespace, fields=f"metadata.name={name}")) as events:
            async for event in events:
                if [holder_of(event.object)] != holders[-1:]:
                    holders.append(holder_of(event.object))
                changed.set()

    collecting = asyncio.create_task(collect())
    try:
        async with asyncio.timeout(LEASE_TIMEOUT_S):
            await changed.wait()
        yield holders
        last = holder_of(await client.get(LEASES, name, namespace))
        async with asyncio.timeout(LEASE_TIMEOUT_S):
            while holders[-1] != last:
                changed.clear()
                await changed.wait()
    finally:
        collecting.cancel()
        await asyncio.wait({collecting})


def holder_of(lease: Object) -> str:
    """The identity of the holder, or an empty string."""
    return str(lease["spec"].get("holderIdentity", ""))
