"""The terminal that somebody sits at, lent to a program elsewhere for as long as it runs."""

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

from pincompute.kube.execution import Execution

CHUNK = 1 << 16
_STDIN = 0


def there() -> bool:
    """Somebody types, and sees what comes of it."""
    return os.isatty(_STDIN) and sys.stdout.isatty()


async def lent(execution: Execution, *, terminal: bool) -> int:
    """What is typed goes there, and what is printed comes here; with which code it ended."""
    async with _whole(execution) if terminal else nullcontext():
        # What waits for a key cannot be told to stop waiting: it ends with the process.
        Thread(target=_read, args=(execution, asyncio.get_running_loop()), daemon=True).start()
        async with aclosing(execution.output()) as printed:
            async for chunk in printed:
                stream = sys.stdout if chunk.stream == "stdout" else sys.stderr
                stream.buffer.write(chunk.data)
                stream.flush()
    return execution.code or 0


@asynccontextmanager
async def _whole(execution: Execution) -> AsyncIterator[None]:
    """Every key is the program's, also those that end programs here; and it knows how much room it has."""

    async def tell() -> None:
        size = os.get_terminal_size(_STDIN)
        await execution.resize(size.columns, size.lines)

    def resized() -> None:
        told.append(asyncio.ensure_future(tell()))

    told: deque[asyncio.Future[None]] = deque(maxlen=1)
    loop, before = asyncio.get_running_loop(), termios.tcgetattr(_STDIN)
    loop.add_signal_handler(signal.SIGWINCH, resized)
    # What was typed before is not lost.
    tty.setraw(_STDIN, termios.TCSADRAIN)
    try:
        await tell()
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)
        loop.remove_signal_handler(signal.SIGWINCH)


def _read(execution: Execution, loop: asyncio.AbstractEventLoop) -> None:
    """Each piece waits until the one before is on its way."""

    def done(what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, loop).result()

    # The program, or all of this, may have ended meanwhile.
    with suppress(OSError, RuntimeError, CancelledError):
        while data := os.read(_STDIN, CHUNK):
            done(execution.write(data))
        done(execution.end_input())
