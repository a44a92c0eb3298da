"""A TCP connection to an HTTP server, for requests that an HTTP client would not send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple


class RawResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class RawConnection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, said: bytes) -> RawResponse:
        self.writer.write(said)
        return await self.read_response()

    async def read_response(self) -> RawResponse:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = dict(each.split(": ", 1) for each in lines)
        return RawResponse(
            int(first.split()[1]), headers, await self.reader.readexactly(int(headers["Content-Length"]))
        )


@asynccontextmanager
async def raw_connection(port: int, said: bytes = b"") -> AsyncGenerator[RawConnection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        yield RawConnection(reader, writer)
    finally:
        writer.close()
