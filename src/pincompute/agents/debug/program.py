"""A program of a session: one in the container, or a helper of the agent on the node. Both have the same streams."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

STREAM_LIMIT_BYTES = 1 << 16
"""Output that waits for a client that does not read. The program then waits, too."""
DRAIN_TIMEOUT_S = 5.0
"""How long output is read after a program's end, as others that it has started may keep its pipes open."""


class Program(Protocol):
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None
    """None with a terminal, which has one output."""

    async def write(self, data: bytes) -> None:
        """Passes input on; returns when there is room for more."""
        ...

    async def close_input(self) -> None: ...

    async def resize_terminal(self, columns: int, rows: int) -> None: ...

    async def wait_exit(self) -> int:
        """The exit code, when the program has ended."""
        ...

    async def dispose(self) -> None:
        """Kills the program if it runs, and releases what it has held."""
        ...


class Input:
    """Standard input of a program, which may end before it has read everything."""

    def __init__(self, writer: asyncio.StreamWriter | None) -> None:
        self._writer = writer

    async def write(self, data: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            return
        with suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None
