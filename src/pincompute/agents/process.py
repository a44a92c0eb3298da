"""What the processes of all agents share: how they end, and how they answer."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

from aiohttp import web


@contextmanager
def until_told() -> Generator[None]:
    """What is under way in the block ends when this process is told to end, and that is a good end."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        yield


@asynccontextmanager
async def answering(
    listen: str, application: web.Application, *, tls: ssl.SSLContext | None = None, grace: float = 60.0
) -> AsyncGenerator[None]:
    """For as long as the block runs; then requests that are under way have so many seconds."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=grace)
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        await web.TCPSite(runner, host, int(port), ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()
