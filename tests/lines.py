"""A connection to a server, for whoever is free to say on it what they like."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple


class Told(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Line(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, said: bytes) -> Told:
        self.writer.write(said)
        return await self.hear()

    async def hear(self) -> Told:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = dict(each.split(": ", 1) for each in lines)
        return Told(int(first.split()[1]), headers, await self.reader.readexactly(int(headers["Content-Length"])))


@asynccontextmanager
async def line(port: int, said: bytes = b"") -> AsyncGenerator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        yield Line(reader, writer)
    finally:
        writer.close()
