"""A TCP forwarder that a test can cut and restore, to simulate network failures."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class TcpForwarder:
    """Listens on `port`, and forwards connections to the target port until it is cut."""

    def __init__(self, target: int, *, host: str = "127.0.0.1", listen: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.port = 0
        self._target = (host, target)
        self._listen = listen
        self._open = True
        self._roads: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, *self._listen)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()
        self._server.close()
        await self._server.wait_closed()

    async def cut(self) -> None:
        """Aborts all connections, and new ones until `restore`."""
        self._open = False
        roads = set(self._roads)
        for road in roads:
            road.cancel()
        await asyncio.gather(*roads, return_exceptions=True)

    def restore(self) -> None:
        self._open = True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        road = asyncio.create_task(self._carry(reader, writer))
        self._roads.add(road)
        road.add_done_callback(self._roads.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._open:
                there, back = await asyncio.open_connection(*self._target)
                try:
                    async with asyncio.TaskGroup() as ways:
                        ways.create_task(_one_way(reader, back))
                        ways.create_task(_one_way(there, writer))
                finally:
                    back.transport.abort()
        finally:
            # Abruptly, like a broken network.
            writer.transport.abort()


async def _one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65536):
            target.write(chunk)
            await target.drain()
        target.write_eof()
    except (OSError, NotImplementedError):
        target.transport.abort()
