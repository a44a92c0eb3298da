"""Ingress agent as a process, with a real API server, a real nginx and backends at the addresses of Services."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from backends import backend, backend_project, create_ingress, create_service, free_port, ingress_path
from control_plane import ControlPlane
from ingress_agent import Agent, constant_requests, start
from pincompute.base.certificate_authority import Authority
from pincompute.base.reexec import ReexecTarget
from pincompute.kube.client import Client
from pincompute.kube.resource import INGRESSES, SERVICES
from polling import equals, until

pytestmark = pytest.mark.cluster


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
        await until(agent.healthy)
        yield agent
        await agent.stop()


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

        unknown = f"helo.{me}.localhost"
        page = f"no route for {unknown}\nnext: pin get, which lists the addresses of your services\n"
        assert await agent.get(unknown) == (404, page)


async def test_host_with_a_path_only_has_a_page_elsewhere(agent: Agent, client: Client) -> None:
    async with backend_project(client, "paths") as me, backend("127.10.0.26", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello", ingress_path("/shop", "hello"))
        await until(lambda: is_served(agent, host, "/shop"))
        for path in ("/", "/shopping", "/%2e%2e/", "/index.html"):
            status, body = await agent.get(host, path)
            assert (status, body.splitlines()[0]) == (404, f"no route for {host}"), path


async def test_reports_served_hosts_in_the_status(agent: Agent, client: Client) -> None:
    async with backend_project(client, "reports") as me, backend("127.10.0.31", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello")
        served = {"hostname": host, "ports": [{"port": agent.port, "protocol": "TCP"}]}
        await until(lambda: equals(reported_points(client, me, "hello"), [served]))
        await until(lambda: equals(agent.backend_name(host), "front"))

        # Another Ingress with the host learns that it is not served; one with a class is left to its controller.
        rules = (await client.get(INGRESSES, "hello", me))["spec"]
        await client.apply({"metadata": {"name": "second", "namespace": me}, "spec": rules}, INGRESSES, manager="test")
        foreign = {**rules, "ingressClassName": "foreign", "rules": [{"host": f"foreign.{me}.localhost"}]}
        await client.apply({"metadata": {"name": "third", "namespace": me}, "spec": foreign}, INGRESSES, manager="test")
        taken = {"hostname": host, "ports": [{**served["ports"][0], "error": "pinterest.com/HostTaken"}]}
        await until(lambda: equals(reported_points(client, me, "second"), [taken]))
        assert await reported_points(client, me, "third") == []

        await client.delete(INGRESSES, "hello", me)
        await until(lambda: equals(reported_points(client, me, "second"), [served]))


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
        await until(lambda: equals(agent.backend_name(host), "a"))
        await create_ingress(client, me, "a", ingress_path("/", "b"))
        await until(lambda: equals(agent.backend_name(host), "b"))
        await client.delete(SERVICES, "b", me)
        await until(lambda: equals(agent.get(host), (503, f"no such service: {me}/b\n")))
        await client.delete(INGRESSES, "a", me)
        await until(lambda: is_gone(agent, host))


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
            assert await echo.receive_str(timeout=60) == "still here"


async def test_restarts_killed_nginx(agent: Agent) -> None:
    first = agent.nginx_pid()
    os.kill(first, signal.SIGKILL)

    await until(lambda: is_restarted(agent, first))
    await until(agent.healthy)


async def test_nginx_outlives_killed_agent_and_is_taken_over(
    agent: Agent, plane: ControlPlane, nginx: Path, client: Client
) -> None:
    first = agent.nginx_pid()
    async with backend_project(client, "outlives") as me, backend("127.10.0.27", "front") as front:
        await create_service(client, me, "hello", *front)
        host = await create_ingress(client, me, "hello")
        await until(lambda: agent.backend_name(host))
        async with constant_requests(agent, host) as results:
            agent.process.kill()
            await agent.process.wait()
            answered = len(results)
            await until(lambda: has_more_than(results, answered + 100))
            # Changes made meanwhile are served as soon as there is an agent again.
            another = await create_ingress(client, me, "another", ingress_path("/", "hello"))
            following = agent._replace(process=await start(plane, nginx, agent.folder, agent.port))
            await until(lambda: following.backend_name(another), within=60)
        assert set(results) == {"front"}
        assert following.nginx_pid() == first
        # It restarts the nginx that it took over, and ends it with itself.
        os.kill(first, signal.SIGKILL)
        await until(lambda: is_restarted(following, first))
        await until(following.healthy)
        await following.stop()


async def test_nginx_outlives_stopped_agent(agent: Agent, plane: ControlPlane, nginx: Path) -> None:
    first = agent.nginx_pid()
    agent.process.terminate()
    assert await agent.process.wait() == 0
    assert await agent.healthy()
    configured = config_time_ns(agent)
    following = agent._replace(process=await start(plane, nginx, agent.folder, agent.port))
    await until(lambda: is_configured_since(following, configured))
    assert following.nginx_pid() == first
    await following.stop()


async def test_workers_of_killed_nginx_do_not_keep_the_port(agent: Agent, plane: ControlPlane, nginx: Path) -> None:
    first = agent.nginx_pid()
    agent.process.kill()
    await agent.process.wait()
    os.kill(first, signal.SIGKILL)
    following = agent._replace(process=await start(plane, nginx, agent.folder, agent.port))
    await until(lambda: is_restarted(following, first))
    await until(following.healthy)
    await following.stop()


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


async def test_serves_https_with_certificates_of_its_authority(
    plane: ControlPlane, nginx: Path, client: Client, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "web", domain="localhost")
    authority.establish()
    port, https = free_port(), free_port()
    options = ("--https", f"127.0.0.1:{https}", "--authority", authority.folder)
    process = await start(plane, nginx, tmp_path, port, options)
    trusting = ssl.create_default_context(cafile=str(authority.bundle))
    async with aiohttp.ClientSession() as browser:
        agent = Agent(port, tmp_path, process, browser)

        async def get(name: str, sent_host: str = "") -> tuple[int, str]:
            url, headers = f"https://127.0.0.1:{https}/", {"Host": f"{sent_host or name}:{https}"}
            async with browser.get(url, headers=headers, ssl=trusting, server_hostname=name) as response:
                return response.status, await response.text()

        try:
            await until(agent.healthy)
            async with backend_project(client, "secure") as me, backend("127.10.0.32", "front") as front:
                await create_service(client, me, "hello", *front)
                host = await create_ingress(client, me, "hello")
                await until(lambda: is_answered(get(host)))
                status, body = await get(host)
                assert (status, msgspec.json.decode(body)["X-Forwarded-Proto"]) == (200, "https")
                # A host without a certificate is refused in the handshake, and has no route after another one's.
                with pytest.raises(aiohttp.ClientConnectorError):
                    await get("shop.example.com")
                assert (await get(host, "shop.example.com"))[0] == 404
        finally:
            await agent.stop()


async def test_logs_port_in_use(plane: ControlPlane, nginx: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = await start(plane, nginx, tmp_path, taken.getsockname()[1], stderr=PIPE)
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while b"nginx start failed" not in (line := await process.stderr.readline()):
                assert line
        assert b"Address already in use" in line
        process.terminate()
        await process.communicate()


async def is_answered(request: Awaitable[tuple[int, str]]) -> bool:
    try:
        return (await request)[0] == 200
    except aiohttp.ClientConnectionError:
        return False


async def reported_points(client: Client, namespace: str, name: str) -> list[Any]:
    status = (await client.get(INGRESSES, name, namespace))["status"]
    return list(status["loadBalancer"].get("ingress", []))


async def is_gone(agent: Agent, host: str) -> bool:
    """Whether the agent knows no route for the host any more."""
    status, body = await agent.get(host)
    return status == 404 and body.startswith(f"no route for {host}\n")


async def is_served(agent: Agent, host: str, path: str) -> bool:
    return (await agent.get(host, path))[0] == 200


async def has_more_than(results: list[str], count: int) -> bool:
    return len(results) > count


def config_time_ns(agent: Agent) -> int:
    return (agent.folder / "nginx.conf").stat().st_mtime_ns


async def is_configured_since(agent: Agent, time_ns: int) -> bool:
    return config_time_ns(agent) > time_ns


async def is_next(agent: Agent) -> bool:
    return "NEXT=1" in read_proc(agent.process.pid, "environ")


async def is_restarted(agent: Agent, first: int) -> bool:
    return agent.nginx_pid() not in (0, first)


def read_proc(pid: int, what: str) -> list[str]:
    return Path(f"/proc/{pid}/{what}").read_text().split("\0")[:-1]
