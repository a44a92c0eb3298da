"""Runs a helper on the node, in a process of its own: it may be killed at any time, and has fewer rights.

Helpers read what tenants have made: names, links, archives and command lines. They use the standard library only.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any, Self

from pincompute.agents.debug.program import STREAM_LIMIT_BYTES, Input


class HelperProgram:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self.stdout: asyncio.StreamReader = process.stdout
        self.stderr: asyncio.StreamReader | None = process.stderr
        self._process = process
        self._input = Input(process.stdin)

    @classmethod
    async def start(cls, module: str, task: dict[str, Any]) -> Self:
        """Starts `python -m module`, which reads its task from the first line of its input."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            limit=STREAM_LIMIT_BYTES,
        )  # fmt: skip
        found = cls(process)
        await found.write(json.dumps(task).encode() + b"\n")
        return found

    async def write(self, data: bytes) -> None:
        await self._input.write(data)

    async def close_input(self) -> None:
        await self._input.close()

    async def resize_terminal(self, columns: int, rows: int) -> None:
        """Helpers have no terminal."""

    async def wait_exit(self) -> int:
        return await self._process.wait()

    async def dispose(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._input.close()
        # Pipes that are not read to their ends stay open, and the process is then never forgotten.
        for stream in filter(None, (self.stdout, self.stderr)):
            while await stream.read(STREAM_LIMIT_BYTES):
                pass
        await self._process.wait()
