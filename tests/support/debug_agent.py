"""An agent for debugging in this process, before a container runtime with one container: this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import aiohttp
import msgspec
from aiohttp.test_utils import TestClient, TestServer

from manual_clock import ManualClock
from pincompute.agents.debug.containerd import Container, Containerd, ExecId, Mount, ProgramStreams
from pincompute.agents.debug.grants import GrantVerifier
from pincompute.agents.debug.server import DebugServer
from pincompute.api.debug import DebugRequest
from pincompute.base.certificate_authority import Authority
from pincompute.base.clock import SystemClock
from pincompute.base.debug_grant import END, GrantSigner, GrantSubject, load_grant_key
from pincompute.base.ids import RandomIds
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CONTAINER_GONE

NODE, UID, CONTAINER = "node-1", "2f1c", "web"
SHELL = ("sh",)


class LocalRuntime:
    """Runs programs of `exec` on this machine, connected to the pipes as containerd does."""

    def __init__(self) -> None:
        self.processes: dict[ExecId, asyncio.subprocess.Process] = {}
        self.pids = [os.getpid()]
        self.pid = os.getpid()

    async def find_running(self, uid: str, name: str) -> Container:
        if (uid, name) != (UID, CONTAINER):
            raise Refused(Problem(CONTAINER_GONE, "no such container"))
        # Each control group has a colon, so that each process belongs to this container.
        return Container(":", {"process": {"args": ["x"], "env": ["A=b"]}}, "overlayfs", "1", self.pid)

    async def find_ended(self, uid: str, name: str) -> Container:
        return await self.find_running(uid, name)

    async def list_pids(self, container: str) -> list[int]:
        return self.pids

    async def mounts_of(self, container: Container) -> list[Mount]:
        return []

    async def exec(self, program: ExecId, process: Mapping[str, Any], streams: ProgramStreams) -> None:
        opened = [
            os.open(path or os.devnull, os.O_RDONLY if path == streams.stdin else os.O_WRONLY) for path in streams
        ]
        try:
            self.processes[program] = await asyncio.create_subprocess_exec(
                *process["args"], stdin=opened[0], stdout=opened[1], stderr=opened[2]
            )
        finally:
            for each in opened:
                os.close(each)

    async def wait_exit(self, program: ExecId) -> int:
        return await self.processes[program].wait()

    async def resize_pty(self, program: ExecId, columns: int, rows: int) -> None: ...

    async def close_stdin(self, program: ExecId) -> None: ...

    async def send_signal(self, program: ExecId, signal: int) -> None:
        if program in self.processes and self.processes[program].returncode is None:
            self.processes[program].send_signal(signal)

    async def delete(self, program: ExecId) -> None:
        self.processes.pop(program, None)


class DebugAgent(NamedTuple):
    server: DebugServer
    runtime: LocalRuntime
    client: TestClient[Any, Any]
    signer: GrantSigner
    clock: ManualClock
    """Of the grants, at the desk and at the agent."""

    def subject(self, asked: DebugRequest, **changes: Any) -> GrantSubject:
        subject = GrantSubject(NODE, "ann", "session-1", asked.verb, UID, CONTAINER, msgspec.json.encode(asked))
        return subject._replace(**changes)

    def grant(self, asked: DebugRequest, **changes: Any) -> str:
        return self.signer.sign(self.subject(asked, **changes))

    @asynccontextmanager
    async def session(self, request: DebugRequest, grant: str = "") -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
        headers = {"Authorization": f"Bearer {grant or self.grant(request)}"}
        query = {"request": msgspec.json.encode(request).decode()}
        async with self.client.ws_connect("/v1/sessions", params=query, headers=headers) as socket:
            yield socket

    async def refused_session(self, request: DebugRequest, grant: str) -> str:
        """The reason and the text of a refusal, which comes before a websocket is opened."""
        headers = {"Authorization": f"Bearer {grant}", "Connection": "Upgrade", "Upgrade": "websocket"}
        headers |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        query = {"request": msgspec.json.encode(request).decode()}
        async with self.client.get("/v1/sessions", params=query, headers=headers) as response:
            (error,) = (await response.json(content_type=None))["errors"]
            return f"{response.status} {error['reason']}: {error['detail']}"

    async def has_no_session(self) -> bool:
        return len(self.server.sessions) == 0

    async def order_end(self, session: str) -> int:
        token = self.signer.sign(GrantSubject(NODE, "ann", session, END))
        async with self.client.post("/v1/sessions/end", headers={"Authorization": f"Bearer {token}"}) as response:
            await response.read()
            return response.status


@asynccontextmanager
async def running_debug_agent(folder: Path) -> AsyncGenerator[DebugAgent]:
    authority = Authority(folder / "ca")
    authority.establish()
    authority.issue_key("grants")
    clock, runtime = ManualClock(), LocalRuntime()
    verifier = GrantVerifier(NODE, load_grant_key(authority.key("grants").with_suffix(".pub")), clock)
    server = DebugServer(cast("Containerd", runtime), verifier, SystemClock())
    async with TestServer(server.application()) as listening, TestClient(listening) as client:
        yield DebugAgent(server, runtime, client, GrantSigner(authority.key("grants"), clock, RandomIds()), clock)


async def read_session(socket: aiohttp.ClientWebSocketResponse) -> tuple[bytes, bytes, dict[str, Any]]:
    """Output, errors and status of a session that ends by itself."""
    output, errors, status = bytearray(), bytearray(), b""
    async for message in socket:
        data: bytes = message.data
        match data[0]:
            case 1:
                output += data[1:]
            case 2:
                errors += data[1:]
            case 3:
                status = data[1:]
    return bytes(output), bytes(errors), msgspec.json.decode(status)
