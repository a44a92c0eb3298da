"""Forwards a Unix socket of this machine to a port of a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pincompute.base.aio import run_until_first_completes
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.port_forward import PortForward

CHUNK_BYTES = 1 << 16


@asynccontextmanager
async def forward_to_socket(client: Client, namespace: str, pod: str, port: int) -> AsyncGenerator[Path]:
    """Opens one port-forward for each connection to the socket, which only the current user can open."""

    async def forward_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Closing the socket tells the local client that the connection was lost.
        with suppress(ApiError, OSError):
            async with client.port_forward(namespace, pod, port) as connection:
                await relay(connection, reader, writer)
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(forward_connection(reader, writer)))

    connections: set[asyncio.Task[None]] = set()
    with TemporaryDirectory(prefix="pin-") as folder:
        path = Path(folder, "socket")
        server = await asyncio.start_unix_server(accept, path)
        try:
            yield path
        finally:
            server.close()
            for task in connections:
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


async def relay(connection: PortForward, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forwards bytes in both directions until either side closes."""

    async def send() -> None:
        while data := await reader.read(CHUNK_BYTES):
            await connection.write(data)

    async def receive() -> None:
        async with aclosing(connection.chunks()) as chunks:
            async for data in chunks:
                writer.write(data)
                await writer.drain()

    await run_until_first_completes(send(), receive())
