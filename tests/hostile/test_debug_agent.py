"""Attacks on the agent of a node: with grants of others, with archives, and by clients that stop reading."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import tarfile
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from debug_agent import DebugAgent, read_session, running_debug_agent
from pincompute.agents.debug import sessions
from pincompute.agents.debug.grants import MAX_CLOCK_SKEW_S
from pincompute.agents.debug.processes import MAX_PROCESSES
from pincompute.api.debug import DebugRequest, ProcessReport
from pincompute.base.debug_grant import END, LIFETIME_S
from polling import until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="helpers give up root, which they need first")
CLOSE_INPUT = b"\xff\0"
SHELL = DebugRequest(command=("sleep", "1000"))


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncGenerator[DebugAgent]:
    async with running_debug_agent(tmp_path / "agent") as running:
        yield running


async def test_a_grant_opens_one_session(agent: DebugAgent) -> None:
    grant = agent.grant(SHELL)
    async with agent.session(SHELL, grant):
        assert "used already" in await agent.refused_session(SHELL, grant)
    assert "used already" in await agent.refused_session(SHELL, grant)


@pytest.mark.parametrize(
    "other",
    [
        DebugRequest(command=("sleep", "1001")),
        DebugRequest(command=("sleep", "1000"), terminal=True),
        DebugRequest(verb="read", path="/etc/shadow"),
        DebugRequest(verb="processes"),
    ],
)
async def test_a_grant_allows_no_other_request(agent: DebugAgent, other: DebugRequest) -> None:
    assert "for another request" in await agent.refused_session(other, agent.grant(SHELL))
    # Not even with the digest of that request, if the verb is another.
    forged = agent.grant(SHELL, request=msgspec.json.encode(other))
    if other.verb != SHELL.verb:
        assert "the grant allows exec" in await agent.refused_session(other, forged)


async def test_other_nodes_replicas_and_keys_are_refused(agent: DebugAgent, tmp_path: Path) -> None:
    assert "for node node-2" in await agent.refused_session(SHELL, agent.grant(SHELL, node="node-2"))
    assert "[" not in await agent.refused_session(SHELL, agent.grant(SHELL, uid="another"))
    assert "ContainerGone" in await agent.refused_session(SHELL, agent.grant(SHELL, uid="another"))
    async with running_debug_agent(tmp_path / "other") as stranger:
        assert "not signed by the desk" in await agent.refused_session(SHELL, stranger.grant(SHELL))
    assert agent.runtime.processes == {}


async def test_expired_and_endless_grants_are_refused(agent: DebugAgent) -> None:
    grant = agent.grant(SHELL)
    agent.clock.at += timedelta(seconds=LIFETIME_S + MAX_CLOCK_SKEW_S + 1)
    assert "expired" in await agent.refused_session(SHELL, grant)
    header, claims, signature = agent.grant(SHELL).split(".")
    longer = json.loads(base64.urlsafe_b64decode(claims + "=="))
    longer["exp"] += 10**9
    body = base64.urlsafe_b64encode(json.dumps(longer).encode()).rstrip(b"=").decode()
    assert "not signed by the desk" in await agent.refused_session(SHELL, f"{header}.{body}.{signature}")


async def test_a_grant_for_a_session_orders_no_end(agent: DebugAgent) -> None:
    async with agent.session(SHELL):
        headers = {"Authorization": f"Bearer {agent.grant(SHELL, request=b'')}"}
        async with agent.client.post("/v1/sessions/end", headers=headers) as response:
            assert (response.status, "orders no end" in await response.text()) == (403, True)
        async with agent.client.post("/v1/sessions/end") as response:
            assert (response.status, "needs a grant" in await response.text()) == (403, True)
        order = agent.grant(DebugRequest(), verb=END)
        assert "GrantRefused" in await agent.refused_session(DebugRequest(), order)
        (process,) = agent.runtime.processes.values()
        assert process.returncode is None


async def test_a_session_that_was_ended_before_it_began_does_not_begin(agent: DebugAgent) -> None:
    # As by a client that leaves the desk as soon as it has a ticket, so that nothing watches over its session.
    grant = agent.grant(SHELL)
    assert await agent.order_end("session-1") == 204
    assert "ended this session before it began" in await agent.refused_session(SHELL, grant)
    async with agent.session(SHELL, agent.grant(SHELL, session="session-2")):
        pass


async def test_sessions_are_bounded(agent: DebugAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS_PER_REPLICA", 1)
    async with agent.session(SHELL):
        assert "the replica has 1 sessions open" in await agent.refused_session(SHELL, agent.grant(SHELL))
        monkeypatch.setattr(sessions, "MAX_SESSIONS", 1)
        assert "the node has 1 sessions open" in await agent.refused_session(SHELL, agent.grant(SHELL))
    await until(agent.has_no_session)
    async with agent.session(SHELL):
        pass


async def test_a_client_that_stops_reading_stops_the_program_and_not_the_agent(agent: DebugAgent) -> None:
    flood = DebugRequest(command=("sh", "-c", "yes; echo unreachable"))
    async with agent.session(flood) as stalled:
        await stalled.receive(timeout=60)
        (process,) = agent.runtime.processes.values()
        # Others are served meanwhile, and the flood waits in the pipes.
        async with agent.session(DebugRequest(command=("echo", "hi"))) as socket:
            assert (await read_session(socket))[0] == b"hi\n"
        assert await agent.order_end("session-1") == 204
        async with asyncio.timeout(60):
            assert await process.wait() == -9
        while not stalled.closed:
            await stalled.receive(timeout=60)


async def test_messages_are_bounded_and_malformed_ones_ignored(agent: DebugAgent) -> None:
    async with agent.session(DebugRequest(command=("cat",), input=True)) as socket:
        for message in (
            b"",
            b"\4",
            b"\4{",
            b'\4{"Width":-1,"Height":0}',
            b'\4{"Width":1e99,"Height":1}',
            b"\7x",
            b"\xff",
        ):
            await socket.send_bytes(message)
        await socket.send_str("text")
        await socket.send_bytes(b"\0still here")
        await socket.send_bytes(CLOSE_INPUT)
        assert (await read_session(socket))[0] == b"still here"


@as_root
@pytest.mark.parametrize("kind", ["climbing", "absolute", "through a link", "device", "pipe", "huge header", "garbage"])
async def test_hostile_archives_write_nothing_outside(agent: DebugAgent, tmp_path: Path, kind: str) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    target.mkdir()
    outside.mkdir()
    async with agent.session(DebugRequest(verb="write", path=str(target))) as socket:
        await socket.send_bytes(b"\0" + hostile_archive(kind, outside))
        await socket.send_bytes(CLOSE_INPUT)
        _, errors, status = await read_session(socket)
    assert (status["status"], list(outside.iterdir())) == ("Failure", [])
    assert errors.count(b"\n") == 1
    assert not [each for each in target.rglob("*") if not each.is_symlink()]


def hostile_archive(kind: str, outside: Path) -> bytes:
    if kind == "garbage":
        return os.urandom(2_048)
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        if kind == "through a link":
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, str(outside)
            archive.addfile(link)
        names = {"climbing": "../outside/evil", "absolute": str(outside / "evil"), "through a link": "link/evil"}
        member = tarfile.TarInfo(names.get(kind, "evil"))
        types = {"device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE, "huge header": tarfile.XHDTYPE}
        member.type = types.get(kind, tarfile.REGTYPE)
        if kind == "huge header":
            member.size = 10 << 30
            return member.tobuf(tarfile.GNU_FORMAT) + bytes(10_240)
        member.size = 0
        archive.addfile(member)
    return target.getvalue()


@as_root
async def test_a_huge_file_is_streamed(agent: DebugAgent, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10 << 30)
    received = 0
    async with agent.session(DebugRequest(verb="read", path=str(tmp_path / "huge"))) as socket:
        while received < 64 << 20:
            message = await socket.receive(timeout=60)
            received += len(message.data)
        assert peak_memory_of_helpers() < 200 << 20


def peak_memory_of_helpers() -> int:
    """Largest resident memory of a helper that is running now. Other children of this process are left out."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
            fields = dict(
                line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line
            )
        except OSError:
            continue
        if fields["PPid"] == str(os.getpid()) and "pincompute.agents.debug" in command and "VmHWM" in fields:
            found.append(int(fields["VmHWM"].split()[0]) << 10)
    return max(found)


@as_root
async def test_names_with_line_breaks_and_bytes_that_are_no_text(agent: DebugAgent, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in (b"\x1b[31mred", b"line\nbreak", b"\xff\xfe"):
        os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT))
    async with agent.session(DebugRequest(verb="list", path=str(folder))) as socket:
        output, _, _ = await read_session(socket)
    assert [each["name"] for each in json.loads(output)] == ["\x1b[31mred", "line\nbreak", "\ufffd\ufffd"]
    async with agent.session(DebugRequest(verb="read", path=str(folder))) as socket:
        archive, _, _ = await read_session(socket)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert len(opened.getnames()) == 4


async def test_thousands_of_processes_are_counted_and_not_all_sent(agent: DebugAgent) -> None:
    # As a container that forks without end: the runtime lists many processes, here the same one again and again.
    agent.runtime.pids = [os.getpid()] * 8_000
    async with agent.session(DebugRequest(verb="processes")) as socket:
        output, _, _ = await read_session(socket)
    report = msgspec.json.decode(output, type=ProcessReport)
    assert (len(report.processes), report.process_count) == (MAX_PROCESSES, 8_000)
    assert len(output) < 4 << 20


@as_root
async def test_a_process_that_got_the_number_of_an_ended_container_is_not_entered(agent: DebugAgent) -> None:
    agent.runtime.pid = 2**22 + 1
    async with agent.session(DebugRequest(verb="read", path="/etc/hostname")) as socket:
        output, errors, _ = await read_session(socket)
    assert (output, b"the container has ended" in errors) == (b"", True)
