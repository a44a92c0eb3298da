"""Moves archives between this machine and a program in a replica, or a helper on its node, by their streams.

Archives are packed and unpacked in a thread, through a pipe that holds 64 KiB: a copy of any size needs little memory.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import IO

import click

from pincompute.base.file_archive import ArchiveRefused, receive, send
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.progress import Progress
from pincompute.base.reasons import FILES_NOT_COPIED
from pincompute.kube.exec_stream import ExecStream

CHUNK_BYTES = 1 << 16
MAX_MESSAGE_CHARS = 2_000
"""Of what a program reports: a hostile one may print without end."""
Work = Callable[[IO[bytes]], None]


class CopyNotes:
    """Lines for the user, from here and from the other side, which may be hostile."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.last = ""
        self._chars_left = 100 * MAX_MESSAGE_CHARS

    def echo_note(self, text: str) -> None:
        if self._chars_left > 0:
            self._chars_left -= len(text)
            self.progress.echo(printable(text[:MAX_MESSAGE_CHARS]))

    def add_remote(self, data: bytes) -> None:
        """The last lines of a failed copy are its error, which is printed later."""
        self.last = (self.last + data.decode(errors="replace"))[-MAX_MESSAGE_CHARS:]


async def upload(stream: ExecStream, path: str, name: str, notes: CopyNotes) -> None:
    """Packs a local path, and writes the archive to the other side, which reports when it has unpacked it."""

    def pack(target: IO[bytes]) -> None:
        send(os.open, path, target, notes.echo_note, name)

    work = _copy_stdin if path == "-" else pack

    async def to_remote(chunk: bytes) -> None:
        await stream.write_stdin(chunk)

    pump = asyncio.create_task(_pump_from(work, to_remote, stream.close_stdin, notes.progress))
    reader = asyncio.create_task(_read_messages(stream, notes))
    await asyncio.wait([pump, reader], return_when=asyncio.FIRST_COMPLETED)
    if reader.done():
        # The other side has ended, well or not, and reads no more.
        pump.cancel()
    await asyncio.gather(pump, return_exceptions=True)
    if not pump.cancelled() and (failure := pump.exception()):
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        raise failure
    await reader
    _require_success(stream, notes)


async def download(stream: ExecStream, path: str, notes: CopyNotes) -> None:
    """Reads the archive of the other side, and unpacks it as a local path."""

    def unpack(source: IO[bytes]) -> None:
        receive(os.open, path, source, notes.echo_note, only_inner_links=True)

    work = _copy_stdout if path == "-" else unpack
    read, write = os.pipe()
    unpacking = asyncio.create_task(asyncio.to_thread(_run_with, work, read, "rb"))
    count = 0
    try:
        async with aclosing(stream.output()) as chunks:
            async for chunk in chunks:
                if chunk.stream == "stderr":
                    notes.add_remote(chunk.data)
                    continue
                count += len(chunk.data)
                notes.progress.update(f"{count / 1e6:,.1f} MB")
                with suppress(BrokenPipeError):
                    await asyncio.to_thread(_write_all, write, chunk.data)
                if unpacking.done():
                    break
    finally:
        os.close(write)
        notes.progress.erase()
        result = await asyncio.gather(unpacking, return_exceptions=True)
    if stream.exit_code:
        # An archive that ended early is a consequence.
        _require_success(stream, notes)
    if isinstance(failure := result[0], BaseException):
        raise failure
    _require_success(stream, notes)


async def _read_messages(stream: ExecStream, notes: CopyNotes) -> None:
    async with aclosing(stream.output()) as chunks:
        async for chunk in chunks:
            notes.add_remote(chunk.data)


async def _pump_from(
    work: Work,
    write_chunk: Callable[[bytes], Awaitable[None]],
    close: Callable[[], Awaitable[None]],
    progress: Progress,
) -> None:
    """Sends what the work writes into a pipe."""
    read, write = os.pipe()
    packing = asyncio.create_task(asyncio.to_thread(_run_with, work, write, "wb"))
    count = 0
    try:
        while chunk := await asyncio.to_thread(os.read, read, CHUNK_BYTES):
            await write_chunk(chunk)
            count += len(chunk)
            progress.update(f"{count / 1e6:,.1f} MB")
    finally:
        # Ends a work that still writes.
        os.close(read)
        progress.erase()
        result = await asyncio.gather(packing, return_exceptions=True)
    if isinstance(failure := result[0], BaseException):
        raise failure
    await close()


def _run_with(work: Work, descriptor: int, mode: str) -> None:
    with open(descriptor, mode) as file:
        try:
            work(file)
        except ArchiveRefused as refused:
            raise Refused(Problem(FILES_NOT_COPIED, printable(str(refused)))) from None
        except BrokenPipeError:
            # The other side has ended, which reports why.
            pass
        except OSError as error:
            raise Refused(Problem(FILES_NOT_COPIED, printable(f"{error.filename or '-'}: {error.strerror}"))) from error
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise Refused(Problem(FILES_NOT_COPIED, f"the archive is refused: {printable(str(error))}")) from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_stdin(target: IO[bytes]) -> None:
    while chunk := os.read(0, CHUNK_BYTES):
        target.write(chunk)
        target.flush()


def _copy_stdout(source: IO[bytes]) -> None:
    while chunk := source.read(CHUNK_BYTES):
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _require_success(stream: ExecStream, notes: CopyNotes) -> None:
    lines = printable(notes.last).strip()
    if stream.exit_code:
        raise Refused(Problem(FILES_NOT_COPIED, lines.splitlines()[-1] if lines else f"exit code {stream.exit_code}"))
    if lines:
        click.echo(lines, err=True)
