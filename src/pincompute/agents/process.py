"""Shutdown and HTTP server, shared by the processes of all agents."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

from aiohttp import web


@contextmanager
def cancel_on_signal() -> Generator[None]:
    """Cancels the block on SIGTERM or SIGINT; the process then ends without an error."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        yield


@asynccontextmanager
async def serve_http(
    listen: str, application: web.Application, *, tls: ssl.SSLContext | None = None, grace: float = 60.0
) -> AsyncGenerator[None]:
    """Serves the application while the block runs. Afterwards open requests have `grace` seconds to finish."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=grace)
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        await web.TCPSite(runner, host, int(port), ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()


def client_certificate(request: web.Request) -> bytes:
    """Certificate of the client of a TLS connection, as DER; empty if it has sent none."""
    assert request.transport is not None
    tls: ssl.SSLObject = request.transport.get_extra_info("ssl_object")
    return tls.getpeercert(binary_form=True) or b""
