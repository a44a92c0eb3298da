"""Connects the local terminal, or standard input and output, to a program in a replica."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import CancelledError
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from threading import Thread
from typing import Any

from pincompute.kube.exec_stream import ExecStream

STDIN_CHUNK_BYTES = 1 << 16
_STDIN = 0


def is_interactive() -> bool:
    return os.isatty(_STDIN) and sys.stdout.isatty()


async def attach_terminal(stream: ExecStream, *, terminal: bool) -> int:
    """Forward input and output until the program ends, and return its exit code."""
    async with _raw_terminal(stream) if terminal else nullcontext():
        # A daemon thread, as a blocking read of a terminal cannot be cancelled.
        Thread(target=_forward_stdin, args=(stream, asyncio.get_running_loop()), daemon=True).start()
        async with aclosing(stream.output()) as chunks:
            async for chunk in chunks:
                output = sys.stdout if chunk.stream == "stdout" else sys.stderr
                output.buffer.write(chunk.data)
                output.flush()
    return stream.exit_code or 0


@asynccontextmanager
async def _raw_terminal(stream: ExecStream) -> AsyncIterator[None]:
    """Pass every key to the program, also Ctrl-C, and tell it the size of the terminal."""

    async def send_size() -> None:
        size = os.get_terminal_size(_STDIN)
        await stream.resize(size.columns, size.lines)

    def on_resize() -> None:
        resizes.append(asyncio.ensure_future(send_size()))

    # Holds a reference: the event loop alone would not keep the task alive.
    resizes: deque[asyncio.Future[None]] = deque(maxlen=1)
    loop, attributes = asyncio.get_running_loop(), termios.tcgetattr(_STDIN)
    loop.add_signal_handler(signal.SIGWINCH, on_resize)
    # TCSADRAIN keeps input that was typed before.
    tty.setraw(_STDIN, termios.TCSADRAIN)
    try:
        await send_size()
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, attributes)
        loop.remove_signal_handler(signal.SIGWINCH)


def _forward_stdin(stream: ExecStream, loop: asyncio.AbstractEventLoop) -> None:
    """Read a chunk only when the previous one is sent, so that fast input does not pile up in memory."""

    def run_in_loop(coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    # The program, the connection or the loop may end at any time.
    with suppress(OSError, RuntimeError, CancelledError):
        while data := os.read(_STDIN, STDIN_CHUNK_BYTES):
            run_in_loop(stream.write_stdin(data))
        run_in_loop(stream.close_stdin())
