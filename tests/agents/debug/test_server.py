"""Sessions of the agent: programs, archives, lists and processes over a websocket."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from debug_agent import CONTAINER, UID, DebugAgent, read_session, running_debug_agent
from pincompute.agents.debug.container_program import ExecOptions, process_of
from pincompute.agents.debug.containerd import Container
from pincompute.agents.debug.relay import exit_status
from pincompute.agents.debug.server import identity_of
from pincompute.api.debug import DebugRequest, FileDetail, ProcessReport
from polling import until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="helpers give up root, which they need first")
CLOSE_INPUT = b"\xff\0"


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncGenerator[DebugAgent]:
    async with running_debug_agent(tmp_path) as running:
        yield running


async def test_runs_a_program_and_returns_its_exit_code(agent: DebugAgent) -> None:
    request = DebugRequest(command=("sh", "-c", "echo out; echo err >&2; exit 3"))
    async with agent.session(request) as socket:
        assert await read_session(socket) == (b"out\n", b"err\n", exit_status(3))
    assert agent.runtime.processes == {}


async def test_passes_input_on_until_it_is_closed(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(command=("cat",), input=True)) as socket:
        await socket.send_bytes(b"\0first ")
        await socket.send_bytes(b"\0second")
        await socket.send_bytes(CLOSE_INPUT)
        assert await read_session(socket) == (b"first second", b"", exit_status(0))


async def test_relays_more_than_any_buffer_holds(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(command=("head", "-c", "3000000", "/dev/zero"))) as socket:
        output, _, status = await read_session(socket)
    assert (len(output), status) == (3_000_000, exit_status(0))


async def test_ends_the_program_when_the_client_leaves(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(command=("sleep", "1000"))):
        (process,) = agent.runtime.processes.values()
    async with asyncio.timeout(60):
        assert await process.wait() == -9
    await until(agent.has_no_session)


async def test_ends_a_session_by_the_order_of_the_desk(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(command=("sleep", "1000"))) as socket:
        assert await agent.order_end("another") == 204
        (process,) = agent.runtime.processes.values()
        assert process.returncode is None
        assert await agent.order_end("session-1") == 204
        message = await socket.receive(timeout=60)
        assert (message.type, socket.close_code) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.POLICY_VIOLATION)
        assert message.extra == "the desk has ended the session"
        async with asyncio.timeout(60):
            assert await process.wait() == -9


async def test_a_background_program_does_not_hold_the_session(
    agent: DebugAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pincompute.agents.debug.relay.DRAIN_TIMEOUT_S", 0.1)
    async with agent.session(DebugRequest(command=("sh", "-c", "sleep 100 & echo $!"))) as socket:
        output, _, status = await read_session(socket)
    os.kill(int(output), 9)
    assert status == exit_status(0)


@as_root
async def test_lists_sends_and_receives_files(agent: DebugAgent, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("content")
    folder = str(tmp_path / "folder")
    async with agent.session(DebugRequest(verb="list", path=folder)) as socket:
        output, _, _ = await read_session(socket)
    (found,) = msgspec.json.decode(output, type=list[FileDetail])
    assert (found.name, found.type, found.size) == ("file", "file", 7)
    async with agent.session(DebugRequest(verb="read", path=folder)) as socket:
        archive, errors, status = await read_session(socket)
    assert (errors, status) == (b"", exit_status(0))
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert opened.getnames() == ["folder", "folder/file"]
    async with agent.session(DebugRequest(verb="write", path=str(tmp_path / "copy"))) as socket:
        await socket.send_bytes(b"\0" + archive)
        await socket.send_bytes(CLOSE_INPUT)
        assert await read_session(socket) == (b"", b"", exit_status(0))
    assert (tmp_path / "copy/file").read_text() == "content"


@as_root
async def test_reports_why_a_path_cannot_be_read(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(verb="read", path="/absent")) as socket:
        assert await read_session(socket) == (b"", b"/absent: No such file or directory\n", exit_status(1))


async def test_reports_processes_and_sockets(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(verb="processes")) as socket:
        output, errors, status = await read_session(socket)
    assert (errors, status) == (b"", exit_status(0))
    report = msgspec.json.decode(output, type=ProcessReport)
    assert [each.pid for each in report.processes] == [os.getpid()]
    port = agent.client.port
    (listening,) = (each for each in report.sockets if each.local.endswith(f":{port}") and each.state == "LISTEN")
    assert listening.pid == os.getpid()


async def test_refuses_the_container_of_another_pod(agent: DebugAgent) -> None:
    request = DebugRequest(verb="processes")
    assert "ContainerGone" in await agent.refused_session(request, agent.grant(request, uid="another"))
    assert "ContainerGone" in await agent.refused_session(request, agent.grant(request, container="another"))
    assert (UID, CONTAINER) == ("2f1c", "web")


def test_a_program_has_the_user_and_limits_of_its_container() -> None:
    specification = {
        "user": {"uid": 1000, "gid": 7, "additionalGids": [7, 8]}, "noNewPrivileges": True, "args": ["server"],
        "env": ["TERM=dumb", "A=b"], "capabilities": {"effective": ["CAP_CHOWN"]},
    }  # fmt: skip
    container = Container("c", {"process": specification}, "overlayfs", "c", 1)
    process = process_of(container, ExecOptions(("sh",), terminal=True, input=True))
    changed = {"args": ["sh"], "terminal": True, "env": ["A=b", "TERM=xterm"]}
    assert process == specification | changed
    assert identity_of(container) == {"uid": 1000, "gid": 7, "groups": [7, 8], "capabilities": ["CAP_CHOWN"]}
