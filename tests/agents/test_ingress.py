"""The ingress agent as it runs: a real API server, a real nginx, and programs that listen where Services say."""

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

from backends import backend, expose, free_port, lead, project, serve
from control_plane import ControlPlane
from pincompute.base.successor import VARIABLE, Successor
from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES, SERVICES

pytestmark = pytest.mark.cluster


class Agent(NamedTuple):
    """The agent as a process of its own, and a browser that looks for every host at its port."""

    port: int
    folder: Path
    process: Process
    browser: aiohttp.ClientSession

    async def ask(self, host: str, path: str = "/") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.browser.get(url, headers={"Host": f"{host}:{self.port}"}) as answer:
            return answer.status, await answer.text()

    async def name(self, host: str) -> str:
        """Which program answers."""
        status, body = await self.ask(host)
        return str(msgspec.json.decode(body)["name"]) if status == 200 else ""

    async def healthy(self) -> bool:
        try:
            return await self.ask("anything", "/healthz") == (200, "ok\n")
        except aiohttp.ClientConnectionError:
            return False

    def nginx(self) -> int:
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


async def test_a_service_answers_by_its_host(agent: Agent, client: Client) -> None:
    async with project(client, "web") as me, backend("127.10.0.20", "front") as front:
        await serve(client, me, "hello", *front)
        host = await expose(client, me, "hello")
        await until(lambda: agent.name(host))

        status, body = await agent.ask(host, "/a/b?c=d%20e")
        here = f"{host}:{agent.port}"
        told = {"name": "front", "path": "/a/b?c=d%20e", "Host": here, "X-Forwarded-Host": here}
        told |= {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Port": str(agent.port), "X-Forwarded-Proto": "http"}
        assert status == 200
        assert told.items() <= msgspec.json.decode(body).items()

        status, body = await agent.ask(f"helo.{me}.localhost")
        said, *others = body.splitlines()
        assert (status, said) == (404, f"nothing answers to helo.{me}.localhost; these do:")
        # What else answers on this cluster is not ours; there may be more of it than is told.
        assert f"  http://{here}" in others or others[-1].endswith(" more")


async def test_what_cannot_answer_says_why(agent: Agent, client: Client) -> None:
    async with project(client, "faults") as me, backend("127.10.0.21", "front") as front:
        await serve(client, me, "front", *front)
        await serve(client, me, "silent", "127.10.0.22", free_port())
        paths = [lead("/", "front"), lead("/gone", "gone"), lead("/silent", "silent"), lead("/port", "front", "no")]
        host = await expose(client, me, "front", *paths)
        await until(lambda: agent.name(host))
        assert await agent.ask(host, "/gone/deep") == (503, f"there is no service {me}/gone\n")
        assert await agent.ask(host, "/silent") == (502, f"service {me}/silent did not answer\n")
        wrong_port = f"service {me}/front has no port no; it has: {front[1]} http\n"
        assert await agent.ask(host, "/port") == (503, wrong_port)
        # A prefix is of whole words, and what a program says itself passes as it is.
        assert (await agent.ask(host, "/goner"))[0] == 200
        assert await agent.ask(host, "/fail/502") == (502, "mine")


async def test_an_edit_takes_effect_within_a_second(agent: Agent, client: Client) -> None:
    async with project(client, "edits") as me, backend("127.10.0.23", "a") as a, backend("127.10.0.24", "b") as b:
        await serve(client, me, "a", *a)
        await serve(client, me, "b", *b)
        host = await expose(client, me, "a")
        await until(lambda: answers(agent.name(host), "a"), within=1)
        await expose(client, me, "a", lead("/", "b"))
        await until(lambda: answers(agent.name(host), "b"), within=1)
        await client.delete(SERVICES, "b", me)
        await until(lambda: answers(agent.ask(host), (503, f"there is no service {me}/b\n")), within=1)
        await client.delete(INGRESSES, "a", me)
        await until(lambda: is_gone(agent, host), within=1)


async def test_a_websocket_outlives_a_reload(agent: Agent, client: Client) -> None:
    async with project(client, "sockets") as me, backend("127.10.0.25", "front") as front:
        await serve(client, me, "hello", *front)
        host = await expose(client, me, "hello")
        await until(lambda: agent.name(host))
        url = f"http://127.0.0.1:{agent.port}/echo"
        async with agent.browser.ws_connect(url, headers={"Host": host}) as echo:
            another = await expose(client, me, "another", lead("/", "hello"))
            await until(lambda: agent.name(another))
            await echo.send_str("still here")
            assert await echo.receive_str(timeout=5) == "still here"


async def test_nginx_is_started_again(agent: Agent) -> None:
    first = agent.nginx()
    os.kill(first, signal.SIGKILL)

    await until(lambda: differs(agent, first))
    await until(agent.healthy)


async def test_nginx_ends_even_when_the_agent_is_killed(agent: Agent) -> None:
    agent.process.kill()
    await agent.process.wait()
    await until(lambda: answers(agent.healthy(), False))


async def test_its_next_version_takes_over_and_no_request_is_refused(agent: Agent, client: Client) -> None:
    first = agent.nginx()
    async with project(client, "next") as me, backend("127.10.0.30", "front") as front:
        await serve(client, me, "hello", *front)
        host = await expose(client, me, "hello", lead("/", "hello"))
        await until(lambda: agent.name(host))
        async with asking(agent, host) as answers_:
            wanted = Successor(told_of(agent.process.pid, "cmdline"), {**os.environ, "NEXT": "1"})
            (agent.folder / "successor").write_bytes(msgspec.json.encode(wanted))
            agent.process.send_signal(signal.SIGHUP)
            await until(lambda: is_next(agent), within=60)
            another = await expose(client, me, "another", lead("/", "hello"))
            await until(lambda: agent.name(another), within=60)
    assert agent.nginx() == first
    assert set(answers_) == {"front"}
    # It is its own from then on: it ends with it, and is started again by it.
    os.kill(first, signal.SIGKILL)
    await until(lambda: differs(agent, first))
    await until(agent.healthy)


async def test_a_port_in_use_is_told(plane: ControlPlane, nginx: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await start(plane, nginx, tmp_path, taken.getsockname()[1], stderr=PIPE)
        assert process.stderr is not None
        async with asyncio.timeout(20):
            while b"does not start" not in (line := await process.stderr.readline()):
                assert line
        assert b"Address already in use" in line
        process.terminate()
        await process.communicate()


async def is_gone(agent: Agent, host: str) -> bool:
    """Whatever else answers on this cluster."""
    status, body = await agent.ask(host)
    return status == 404 and body.startswith(f"nothing answers to {host}") and f"http://{host}" not in body


async def is_next(agent: Agent) -> bool:
    return "NEXT=1" in told_of(agent.process.pid, "environ")


async def differs(agent: Agent, first: int) -> bool:
    return agent.nginx() not in (0, first)


@asynccontextmanager
async def asking(agent: Agent, host: str) -> AsyncGenerator[list[str]]:
    """One request after the other, each by a connection of its own; who answered, or what went wrong."""
    answers_: list[str] = []

    async def ask() -> None:
        url, headers = f"http://127.0.0.1:{agent.port}/", {"Host": host, "Connection": "close"}
        while True:
            try:
                async with agent.browser.get(url, headers=headers) as answer:
                    said = await answer.text()
                    answers_.append(msgspec.json.decode(said)["name"] if answer.status == 200 else said)
            except aiohttp.ClientError as error:
                answers_.append(repr(error))

    tasks = [asyncio.create_task(ask()) for _ in range(2)]
    try:
        yield answers_
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)


def told_of(pid: int, what: str) -> list[str]:
    return Path(f"/proc/{pid}/{what}").read_text().split("\0")[:-1]


async def start(plane: ControlPlane, nginx: Path, folder: Path, port: int, **more: Any) -> Process:
    words = ("--kubeconfig", plane.kubeconfig(folder, "ingress"), "--folder", folder, "--nginx", nginx)
    command = (sys.executable, "-m", "pincompute", "agent", "ingress", "--listen", f"127.0.0.1:{port}", *words)
    variables = {**os.environ, VARIABLE: str(folder / "successor")}
    return await asyncio.create_subprocess_exec(*map(str, command), env=variables, **more)


async def answers(asked: Awaitable[object], wanted: object) -> bool:
    return await asked == wanted


async def until(question: Callable[[], Awaitable[object]], within: float = 10) -> None:
    """Ask until the answer is yes."""
    async with asyncio.timeout(within):
        while not await question():  # noqa: ASYNC110  (a browser is not told, it asks again)
            await asyncio.sleep(0.02)
