"""The real proxy of mutual TLS on loopback, with certificates of a test's own authority."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from certificate_factory import TRUST_DOMAIN, IssuedCertificate, issue_authority, issue_svid
from pincompute.agents.identity.bundle import IDENTITY_FILE, TRUST_FILE
from polling import until
from real_platform import free_port

CALLEE = "shop/api"
CALLER = "me/web"
STARTS = 5
"""Attempts to start: another process can take a free port before the proxy does."""


def spiffe_id(workload: str) -> str:
    return f"spiffe://{TRUST_DOMAIN}/{workload}"


class RunningProxy(NamedTuple):
    process: subprocess.Popen[bytes]
    identity: Path
    log: Path
    port: int
    """Of mutual TLS."""
    health_port: int
    call_ports: tuple[int, ...]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.log.read_text().splitlines()]

    async def ready(self) -> str:
        """Empty while it is ready, and otherwise its reason."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.health_port}/ready") as response,
            ):
                text = await response.text()
                return "" if response.status == 200 else text.strip()
        except aiohttp.ClientError as error:
            return str(error) or type(error).__name__

    async def replace_identity(self, source: Path) -> None:
        """Replace the files as a whole, as the kubelet does, and wait until they are loaded."""
        before = sum(each["msg"] == "certificate loaded" for each in self.lines())
        for name in (IDENTITY_FILE, TRUST_FILE):
            shutil.copy(source / name, self.identity / f"{name}.new")
        for name in (IDENTITY_FILE, TRUST_FILE):
            (self.identity / f"{name}.new").replace(self.identity / name)

        async def loaded() -> bool:
            return sum(each["msg"] == "certificate loaded" for each in self.lines()) > before

        await until(loaded)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


class TrustedWorkloads(NamedTuple):
    """An authority, and the files of workloads with certificates of it."""

    folder: Path
    root: IssuedCertificate

    @classmethod
    def create(cls, folder: Path) -> TrustedWorkloads:
        return cls(folder, issue_authority(name=folder.name))

    def identity(self, workload: str, name: str = "", **options: Any) -> Path:
        certificate = issue_svid(self.root, spiffe_id(workload), **options)
        return certificate.write_bundle(self.folder / (name or workload.replace("/", "-")), self.root)

    def client(self, folder: Path | None) -> ssl.SSLContext:
        """A client with the certificate of this folder, or none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=self.root.pem)
        if folder:
            context.load_cert_chain(folder / "identity.pem")
        return context


@asynccontextmanager
async def running_proxy(
    program: Path,
    workload: str,
    identity: Path,
    *,
    callers: Sequence[str] = (),
    application_port: int = 0,
    calls: Sequence[str] = (),
    callee_port: int = 0,
    become_ready: bool = True,
) -> AsyncIterator[RunningProxy]:
    for attempt in range(STARTS):
        port, health_port, *call_ports = (free_port() for _ in range(2 + len(calls)))
        log = identity / f"proxy-{attempt}.log"
        project, name = workload.split("/")
        environment = {
            "PIN_PROJECT": project,
            "PIN_WORKLOAD": name,
            "IDENTITY_FOLDER": str(identity),
            "MTLS_CALLERS": " ".join(callers),
            "MTLS_CALLS": " ".join(f"{call}={at}" for call, at in zip(calls, call_ports, strict=True)),
            "MTLS_APPLICATION_PORT": str(application_port),
            "MTLS_ADDRESS": f"127.0.0.1:{port}",
            "MTLS_HEALTH_ADDRESS": f"127.0.0.1:{health_port}",
            "MTLS_CALLEE_ADDRESS": f"127.0.0.1:{callee_port}",
        }
        with log.open("wb") as file:
            process = subprocess.Popen([program], env=environment, stderr=file)  # noqa: ASYNC220  (returns at once)
        running = RunningProxy(process, identity, log, port, health_port, tuple(call_ports))
        try:
            if await _started(running, become_ready=become_ready):
                yield running
                return
        finally:
            process.kill()
            process.wait()
    raise AssertionError(log.read_text())


async def _started(running: RunningProxy, *, become_ready: bool) -> bool:
    """False if a port was taken by another process."""

    async def decided() -> bool:
        if running.process.poll() is not None:
            return True
        if become_ready:
            return not await running.ready()
        return any(each["msg"] == "proxy started" for each in running.lines())

    await until(decided)
    if running.process.poll() is None:
        return True
    assert "address already in use" in running.log.read_text(), running.log.read_text()
    return False


class Application:
    """An application behind the proxy: it answers with what it has seen."""

    def __init__(self) -> None:
        self.requests = 0
        self.hold = asyncio.Event()
        self.held = asyncio.Event()

    async def report_request(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if request.path == "/held":
            self.held.set()
            await self.hold.wait()
        if request.path == "/socket":
            return await _echo_messages(request)
        if request.path == "/stream":
            return await _echo_stream(request)
        headers = [[name, value] for name, value in request.headers.items()]
        body = (await request.read()).decode()
        return web.json_response({"headers": headers, "path": request.path_qs, "body": body})


async def _echo_messages(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"{request.headers['Pin-Caller']}: {message.data}")
    return socket


async def _echo_stream(request: web.Request) -> web.StreamResponse:
    """Answers each chunk of the request before it reads the next one."""
    response = web.StreamResponse()
    await response.prepare(request)
    async for chunk in request.content.iter_any():
        await response.write(chunk)
    return response


@asynccontextmanager
async def running_application() -> AsyncIterator[tuple[Application, int]]:
    application = Application()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", application.report_request)
    runner = web.AppRunner(app, max_field_size=1 << 20, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield application, runner.addresses[0][1]
    finally:
        with suppress(RuntimeError):
            await runner.cleanup()


class CalledPair(NamedTuple):
    """A caller and a callee, each with its proxy, and the callee's application."""

    program: Path
    trusted: TrustedWorkloads
    application: Application
    application_port: int
    caller: RunningProxy
    callee: RunningProxy

    @property
    def url(self) -> str:
        """Where the caller's application calls the callee."""
        return f"http://127.0.0.1:{self.caller.call_ports[0]}"

    @property
    def mtls_url(self) -> str:
        return f"https://127.0.0.1:{self.callee.port}"


@asynccontextmanager
async def called_pair(program: Path, folder: Path, *, callers: Sequence[str] = (CALLER,)) -> AsyncIterator[CalledPair]:
    trusted = TrustedWorkloads.create(folder)
    async with (
        running_application() as (application, port),
        running_proxy(program, CALLEE, trusted.identity(CALLEE), callers=callers, application_port=port) as callee,
        running_proxy(program, CALLER, trusted.identity(CALLER), calls=[CALLEE], callee_port=callee.port) as caller,
    ):
        yield CalledPair(program, trusted, application, port, caller, callee)
