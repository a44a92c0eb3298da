"""A port of a pod as a socket of this machine, for what speaks by sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pincompute.base.ways import until_either
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.forwarding import Forwarding

CHUNK = 1 << 16


@asynccontextmanager
async def tunnel(client: Client, namespace: str, pod: str, port: int) -> AsyncGenerator[Path]:
    """Every connection to the socket is one to the port; only this user of this machine may make any."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever asked hears that it broke off.
        with suppress(ApiError, OSError):
            async with client.forward(namespace, pod, port) as line:
                await both_ways(line, reader, writer)
        writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        carried.add(asyncio.create_task(carry(reader, writer)))

    carried: set[asyncio.Task[None]] = set()
    with TemporaryDirectory(prefix="pin-") as folder:
        path = Path(folder, "socket")
        server = await asyncio.start_unix_server(begin, path)
        try:
            yield path
        finally:
            server.close()
            for each in carried:
                each.cancel()
            await asyncio.gather(*carried, return_exceptions=True)


async def both_ways(line: Forwarding, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until either side hangs up."""

    async def there() -> None:
        while data := await reader.read(CHUNK):
            await line.write(data)

    async def back() -> None:
        async with aclosing(line.received()) as answers:
            async for data in answers:
                writer.write(data)
                await writer.drain()

    await until_either(there(), back())
