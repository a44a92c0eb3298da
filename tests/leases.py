"""Who has a lease, as somebody sees it who looks on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from pincompute.kube.client import Client
from pincompute.kube.resource import LEASES, Object

PATIENCE = 60.0


@asynccontextmanager
async def holders(client: Client, namespace: str, name: str) -> AsyncGenerator[list[str]]:
    """Who holds it, one after the other, nobody being empty: from now on, and up to who does when this is left."""
    seen: list[str] = []
    told = asyncio.Event()

    async def look() -> None:
        async with aclosing(client.watch(LEASES, namespace, fields=f"metadata.name={name}")) as events:
            async for event in events:
                if [holder(event.object)] != seen[-1:]:
                    seen.append(holder(event.object))
                told.set()

    looking = asyncio.create_task(look())
    try:
        async with asyncio.timeout(PATIENCE):
            await told.wait()
        yield seen
        last = holder(await client.get(LEASES, name, namespace))
        async with asyncio.timeout(PATIENCE):
            while seen[-1] != last:
                told.clear()
                await told.wait()
    finally:
        looking.cancel()
        await asyncio.wait({looking})


def holder(lease: Object) -> str:
    return str(lease["spec"].get("holderIdentity", ""))
