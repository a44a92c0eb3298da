"""Runs a program in a container by containerd, which applies the container's user, limits and restrictions to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, Self

from pincompute.agents.debug.containerd import TIMEOUT_S, Container, Containerd, ExecId, ProgramStreams
from pincompute.agents.debug.program import STREAM_LIMIT_BYTES, Input
from pincompute.base.problem import Refused

TERMINAL_TYPE = "TERM=xterm"
_STDOUT, _STDERR, _STDIN = "stdout", "stderr", "stdin"


class ExecOptions(NamedTuple):
    command: Sequence[str]
    terminal: bool
    input: bool


class ContainerProgram:
    """A running program. Its streams are named pipes in a private folder, as containerd requires."""

    def __init__(self, containerd: Containerd, program: ExecId, folder: Path) -> None:
        self.stdout = asyncio.StreamReader(limit=STREAM_LIMIT_BYTES)
        self.stderr: asyncio.StreamReader | None = None
        self._containerd = containerd
        self._program = program
        self._folder = folder
        self._input = Input(None)
        self._transports: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(cls, containerd: Containerd, container: Container, id_: str, options: ExecOptions) -> Self:
        found = cls(containerd, ExecId(container.id, id_), Path(mkdtemp(prefix="pin-debug-")))
        try:
            await found._start(container, options)
        except BaseException:
            await found.dispose()
            raise
        return found

    async def _start(self, container: Container, options: ExecOptions) -> None:
        self._transports.append(await _read_pipe(self._pipe(_STDOUT), self.stdout))
        if not options.terminal:
            self.stderr = asyncio.StreamReader(limit=STREAM_LIMIT_BYTES)
            self._transports.append(await _read_pipe(self._pipe(_STDERR), self.stderr))
        stdin = str(self._pipe(_STDIN)) if options.input else ""
        streams = ProgramStreams(stdin, str(self._pipe(_STDOUT)), str(self._pipe(_STDERR)) if self.stderr else "")
        process = process_of(container, options)
        if not stdin:
            await self._containerd.exec(self._program, process, streams)
            return
        # Without a writer a pipe is at its end, and without a reader it cannot be written to. This one is both, until
        # the program has its end.
        held = os.open(stdin, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            writer = await _write_pipe(Path(stdin))
            self._transports.append(writer.transport)
            self._input = Input(writer)
            await self._containerd.exec(self._program, process, streams)
        finally:
            os.close(held)

    async def write(self, data: bytes) -> None:
        await self._input.write(data)

    async def close_input(self) -> None:
        await self._input.close()
        # The runtime holds the pipe open, so that a client may come back. This one does not.
        with suppress(Refused):
            await self._containerd.close_stdin(self._program)

    async def resize_terminal(self, columns: int, rows: int) -> None:
        # The program may have ended.
        with suppress(Refused):
            await self._containerd.resize_pty(self._program, columns, rows)

    async def wait_exit(self) -> int:
        return await self._containerd.wait_exit(self._program)

    async def dispose(self) -> None:
        for transport in self._transports:
            transport.close()
        await end_program(self._containerd, self._program)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pipe(self, name: str) -> Path:
        path = self._folder / name
        if not path.exists():
            os.mkfifo(path, 0o600)
        return path


async def end_program(containerd: Containerd, program: ExecId) -> None:
    """Kills a program and removes its record; does nothing if there is none."""
    with suppress(Refused, TimeoutError):
        await containerd.send_signal(program, signal.SIGKILL)
        async with asyncio.timeout(TIMEOUT_S):
            await containerd.wait_exit(program)
    with suppress(Refused):
        await containerd.delete(program)


async def end_all_programs(containerd: Containerd, prefix: str) -> None:
    """Ends the programs that an agent which was killed has left behind, and that no client is connected to."""
    # Without a runtime there is nothing to end.
    with suppress(Refused):
        for container in await containerd.list_ids():
            with suppress(Refused):
                for program in await containerd.list_programs(container):
                    if program.exec.startswith(prefix):
                        await end_program(containerd, program)


def process_of(container: Container, options: ExecOptions) -> dict[str, Any]:
    """The process specification: that of the container, with another command."""
    process = dict(container.process)
    process["args"] = list(options.command)
    process["terminal"] = options.terminal
    if options.terminal:
        environment = [each for each in process.get("env") or [] if not each.startswith("TERM=")]
        process["env"] = [*environment, TERMINAL_TYPE]
    return process


async def _read_pipe(path: Path, reader: asyncio.StreamReader) -> asyncio.BaseTransport:
    # Without blocking, as there is no writer yet.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return transport


async def _write_pipe(path: Path) -> asyncio.StreamWriter:
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(descriptor, "wb")
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
