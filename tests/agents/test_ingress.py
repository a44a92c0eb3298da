"""Ingress agent as a process, with a real API server, a real nginx and backends at the addresses of Services."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest

from backends import backend, backend_project, create_ingress, create_service, free_port, ingress_path
from control_plane import ControlPlane
from pincompute.base.reexec import REEXEC_VARIABLE, ReexecTarget
from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES, SERVICES

pytestmark = pytest.mark.cluster


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


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="test") as client:
        yield client


@pytest.fixture
async def agent(plane: ControlPlane, nginx: Path, tmp_path: Path) -> AsyncIterator[Agent]:
    port = free_port()
    process = await start(plane, nginx, tmp_path, port)
    async with aiohttp.ClientSession() as browser:
        agent = Agent(port, tmp_path, process, browser)
        await until(agent.healthy, within=20)
        yield agent
        if process.returncode is None:
            process.terminate()
            assert await process.wait() == 0
            assert not await agent.healthy()


async def test_routes_host_to_service(agent: Agent, client: Client) -> None:
    async with backend_project(client, "web") as me, backend("127.10.0.20", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello")
        await until(lambda: agent.backend_name(host))

        status, body = await agent.get(host, "/a/b?c=d%20e")
        here = f"{host}:{agent.port}"
        expected = {"name": "front", "path": "/a/b?c=d%20e", "Host": here, "X-Forwarded-Host": here}
        expected |= {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Port": str(agent.port), "X-Forwarded-Proto": "http"}
        assert status == 200
        assert expected.items() <= msgspec.json.decode(body).items()

        status, body = await agent.get(f"helo.{me}.localhost")
        first_line, *others = body.splitlines()
        assert (status, first_line) == (404, f"no route for helo.{me}.localhost; known hosts:")
        # The cluster is shared by other tests: there may be more hosts than the page lists.
        assert f"  http://{here}" in others or others[-1].endswith(" more")


async def test_error_pages_name_the_fault(agent: Agent, client: Client) -> None:
    async with backend_project(client, "faults") as me, backend("127.10.0.21", "front") as front:
        await create_service(client, me, "front", *front)
        await create_service(client, me, "silent", "127.10.0.22", free_port())
        paths = [
            ingress_path("/", "front"),
            ingress_path("/gone", "gone"),
            ingress_path("/silent", "silent"),
            ingress_path("/port", "front", "no"),
        ]
        host = await create_ingress(client, me, "front", *paths)
        await until(lambda: agent.backend_name(host))
        assert await agent.get(host, "/gone/deep") == (503, f"no such service: {me}/gone\n")
        assert await agent.get(host, "/silent") == (502, f"service {me}/silent did not answer\n")
        wrong_port = f"service {me}/front has no port no; its ports: {front[1]} http\n"
        assert await agent.get(host, "/port") == (503, wrong_port)
        # A prefix matches whole path elements, and errors of the program itself are passed through.
        assert (await agent.get(host, "/goner"))[0] == 200
        assert await agent.get(host, "/fail/502") == (502, "mine")


async def test_ingress_change_takes_effect_within_one_second(agent: Agent, client: Client) -> None:
    async with (
        backend_project(client, "edits") as me,
        backend("127.10.0.23", "a") as a,
        backend("127.10.0.24", "b") as b,
    ):
        await create_service(client, me, "a", *a)
        await create_service(client, me, "b", *b)
        host = await create_ingress(client, me, "a")
        await until(lambda: equals(agent.backend_name(host), "a"), within=1)
        await create_ingress(client, me, "a", ingress_path("/", "b"))
        await until(lambda: equals(agent.backend_name(host), "b"), within=1)
        await client.delete(SERVICES, "b", me)
        await until(lambda: equals(agent.get(host), (503, f"no such service: {me}/b\n")), within=1)
        await client.delete(INGRESSES, "a", me)
        await until(lambda: is_gone(agent, host), within=1)


async def test_websocket_survives_reload(agent: Agent, client: Client) -> None:
    async with backend_project(client, "sockets") as me, backend("127.10.0.25", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello")
        await until(lambda: agent.backend_name(host))
        url = f"http://127.0.0.1:{agent.port}/echo"
        async with agent.browser.ws_connect(url, headers={"Host": host}) as echo:
            another = await create_ingress(client, me, "another", ingress_path("/", "hello"))
            await until(lambda: agent.backend_name(another))
            await echo.send_str("still here")
            assert await echo.receive_str(timeout=5) == "still here"


async def test_restarts_killed_nginx(agent: Agent) -> None:
    first = agent.nginx_pid()
    os.kill(first, signal.SIGKILL)

    await until(lambda: is_restarted(agent, first))
    await until(agent.healthy)


async def test_nginx_ends_when_agent_is_killed(agent: Agent) -> None:
    agent.process.kill()
    await agent.process.wait()
    await until(lambda: equals(agent.healthy(), False))


async def test_reexec_keeps_nginx_and_refuses_no_request(agent: Agent, client: Client) -> None:
    first = agent.nginx_pid()
    async with backend_project(client, "next") as me, backend("127.10.0.30", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello", ingress_path("/", "hello"))
        await until(lambda: agent.backend_name(host))
        async with constant_requests(agent, host) as results:
            wanted = ReexecTarget(read_proc(agent.process.pid, "cmdline"), {**os.environ, "NEXT": "1"})
            (agent.folder / "successor").write_bytes(msgspec.json.encode(wanted))
            agent.process.send_signal(signal.SIGHUP)
            await until(lambda: is_next(agent), within=60)
            another = await create_ingress(client, me, "another", ingress_path("/", "hello"))
            await until(lambda: agent.backend_name(another), within=60)
    assert agent.nginx_pid() == first
    assert set(results) == {"front"}
    # The new version manages the inherited nginx: it restarts it, and stops it at its own end.
    os.kill(first, signal.SIGKILL)
    await until(lambda: is_restarted(agent, first))
    await until(agent.healthy)


async def test_logs_port_in_use(plane: ControlPlane, nginx: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await start(plane, nginx, tmp_path, taken.getsockname()[1], stderr=PIPE)
        assert process.stderr is not None
        async with asyncio.timeout(20):
            while b"nginx start failed" not in (line := await process.stderr.readline()):
                assert line
        assert b"Address already in use" in line
        process.terminate()
        await process.communicate()


async def is_gone(agent: Agent, host: str) -> bool:
    """Whether the agent knows no route for the host any more."""
    status, body = await agent.get(host)
    return status == 404 and body.startswith(f"no route for {host}") and f"http://{host}" not in body


async def is_next(agent: Agent) -> bool:
    return "NEXT=1" in read_proc(agent.process.pid, "environ")


async def is_restarted(agent: Agent, first: int) -> bool:
    return agent.nginx_pid() not in (0, first)


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


def read_proc(pid: int, what: str) -> list[str]:
    return Path(f"/proc/{pid}/{what}").read_text().split("\0")[:-1]


async def start(plane: ControlPlane, nginx: Path, folder: Path, port: int, **more: Any) -> Process:
    words = ("--kubeconfig", plane.kubeconfig(folder, "ingress"), "--folder", folder, "--nginx", nginx)
    command = (sys.executable, "-m", "pincompute", "agent", "ingress", "--listen", f"127.0.0.1:{port}", *words)
    variables = {**os.environ, REEXEC_VARIABLE: str(folder / "successor")}
    return await asyncio.create_subprocess_exec(*map(str, command), env=variables, **more)


async def equals(actual: Awaitable[object], expected: object) -> bool:
    return await actual == expected


async def until(condition: Callable[[], Awaitable[object]], within: float = 10) -> None:
    """Polls until the condition holds."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110  (an HTTP client can only poll)
            await asyncio.sleep(0.02)
