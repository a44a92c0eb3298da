"""Shutdown and HTTP server of a process that serves other processes of the platform, and the callers' certificates."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID


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
    listen: str,
    application: web.Application,
    *,
    tls: ssl.SSLContext | None = None,
    grace: float = 60.0,
    cancel_disconnected: bool = False,
) -> AsyncGenerator[None]:
    """Serves the application while the block runs. Afterwards open requests have `grace` seconds to finish."""
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=grace, handler_cancellation=cancel_disconnected
    )
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        await web.TCPSite(runner, host, int(port), ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()


def mutual_tls_context(certificate: Path, trust: Path) -> ssl.SSLContext:
    """Requires client certificates of an authority. The key lies beside the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(trust)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def client_certificate(request: web.Request) -> bytes:
    """The certificate of the client in DER; empty if it has none."""
    assert request.transport is not None
    tls: ssl.SSLObject | None = request.transport.get_extra_info("ssl_object")
    return (tls.getpeercert(binary_form=True) if tls else None) or b""


def common_name(certificate: bytes) -> str:
    """The common name in a certificate; empty if it has none, or several."""
    if not certificate:
        return ""
    names = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""
