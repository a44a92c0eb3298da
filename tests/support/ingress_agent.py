"""The ingress agent as a process with a real nginx, and requests to it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.base.reexec import REEXEC_VARIABLE
from pincompute.engine import debian
from polling import equals, until


@pytest.fixture(scope="session")
def nginx() -> Path:
    """Debian's nginx, downloaded once into the cache if the machine has none."""
    debian.ensure_programs("nginx")
    program = debian.find_program("nginx")
    assert program is not None
    return program


class Agent(NamedTuple):
    """The agent's process, and an HTTP client that sends requests for any host to its port."""

    port: int
    folder: Path
    process: Process
    browser: aiohttp.ClientSession

    async def get(self, host: str, path: str = "/") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.browser.get(url, headers={"Host": f"{host}:{self.port}"}) as response:
            return response.status, await response.text()

    async def stop(self) -> None:
        """Stop the agent, which must end without an error, and nginx with it."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
            assert await self.process.wait() == 0
            assert not await self.healthy()
        elif pid := self.nginx_pid():
            os.kill(pid, signal.SIGTERM)
            await until(lambda: equals(self.healthy(), False))

    async def backend_name(self, host: str) -> str:
        """Name of the backend that responds."""
        status, body = await self.get(host)
        return str(msgspec.json.decode(body)["name"]) if status == 200 else ""

    async def healthy(self) -> bool:
        try:
            return await self.get("anything", "/healthz") == (200, "ok\n")
        except aiohttp.ClientConnectionError:
            return False

    def nginx_pid(self) -> int:
        try:
            return int((self.folder / "nginx.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0


@asynccontextmanager
async def constant_requests(agent: Agent, host: str) -> AsyncGenerator[list[str]]:
    """Sends requests without a pause, each on a new connection; yields the backends' names, or the errors."""
    results: list[str] = []

    async def request_continuously() -> None:
        url, headers = f"http://127.0.0.1:{agent.port}/", {"Host": host, "Connection": "close"}
        while True:
            try:
                async with agent.browser.get(url, headers=headers) as response:
                    body = await response.text()
                    results.append(msgspec.json.decode(body)["name"] if response.status == 200 else body)
            except aiohttp.ClientError as error:
                results.append(repr(error))

    tasks = [asyncio.create_task(request_continuously()) for _ in range(2)]
    try:
        yield results
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def start(
    plane: ControlPlane, nginx: Path, folder: Path, port: int, options: tuple[object, ...] = (), **more: Any
) -> Process:
    words = ("--kubeconfig", plane.kubeconfig(folder, "ingress"), "--folder", folder, "--nginx", nginx)
    command = (
        sys.executable,
        "-m",
        "pincompute",
        "agent",
        "ingress",
        "--listen",
        f"127.0.0.1:{port}",
        *words,
        *options,
    )
    variables = {**os.environ, REEXEC_VARIABLE: str(folder / "successor")}
    return await asyncio.create_subprocess_exec(*map(str, command), env=variables, **more)
