"""A real ZooKeeper for tests, on loopback, that can be stopped and started again with its data."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pincompute.agents.traffic.ensemble import Ensemble
from pincompute.base.clock import SystemClock
from pincompute.engine.zookeeper import server
from real_platform import free_port

PASSWORD = "p4ssword"
START_TIMEOUT_S = 60.0


class ZooKeeperServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        server.ensure_zookeeper()
        (folder / "data").mkdir()
        (folder / "zoo.cfg").write_text(server.zookeeper_configuration(folder / "data", self.port))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as output:
            command = server.zookeeper_command(self.folder / "zoo.cfg")
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)

    def stop(self) -> None:
        """Kills it, as a machine does that loses power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def wait_until_listening(self) -> None:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not await asyncio.to_thread(self._is_listening):  # noqa: ASYNC110  (another process)
                await asyncio.sleep(0.05)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="session")
def shared_zookeeper() -> Iterator[ZooKeeperServer]:
    """For tests that leave it running; each takes a root of its own."""
    with tempfile.TemporaryDirectory(prefix="zk-") as folder:
        running = ZooKeeperServer(Path(folder))
        running.start()
        yield running
        running.stop()


@pytest.fixture
def zookeeper() -> Iterator[ZooKeeperServer]:
    """For tests that stop it. It is not started yet."""
    with tempfile.TemporaryDirectory(prefix="zk-") as folder:
        stopped = ZooKeeperServer(Path(folder))
        yield stopped
        stopped.stop()


def unique_root() -> str:
    return f"/serversets-{uuid.uuid4().hex[:12]}"


@asynccontextmanager
async def connected(
    zookeeper: ZooKeeperServer, password: str = PASSWORD, session_timeout_s: float = 30.0
) -> AsyncIterator[Ensemble]:
    """An ensemble with a session. The long time-out tolerates a test machine that stands still."""
    ensemble = Ensemble(zookeeper.address, password, SystemClock(), session_timeout_s=session_timeout_s)
    ensemble.start()
    try:
        await until_holds(lambda: bool(ensemble.session))
        yield ensemble
    finally:
        await ensemble.stop()


async def until_holds(condition: object, within_s: float = 120.0) -> None:
    """Polls a function, plain or asynchronous, until it returns something true."""
    assert callable(condition)
    async with asyncio.timeout(within_s):
        while True:
            found = condition()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.02)
