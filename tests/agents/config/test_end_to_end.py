"""The programs of a pod as processes, and the store behind its real listener for pods: both sides with certificates."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from config_bundles import new_config_store, publish_files
from pincompute.agents.config.server import build_app
from pincompute.agents.config.store import ConfigStore
from pincompute.agents.listeners import PodListener
from pincompute.base.certificate_authority import Authority
from pincompute.base.http_process import serve_http
from pincompute.base.secure_files import write_private_file
from polling import until
from real_platform import free_port

WAIT_TIMEOUT_S = 60.0
TRUST_DOMAIN = "test.local"
ONE, TWO = {"flags.json": b'{"a": 1}', "deep/b": b"same"}, {"flags.json": b'{"a": 2}', "deep/b": b"same"}


class World(NamedTuple):
    authority: Authority
    store: ConfigStore
    folder: Path
    port: int

    @classmethod
    def create(cls, folder: Path) -> World:
        authority = Authority(folder / "authority")
        authority.establish()
        return cls(authority, new_config_store(folder / "store"), folder, free_port())

    def identity(self, project: str, workload: str) -> Path:
        name = f"{project}-{workload}"
        self.authority.issue(name, hosts=(f"spiffe://{TRUST_DOMAIN}/{project}/{workload}",))
        folder = self.folder / name
        pem = self.authority.key(name).read_bytes() + self.authority.certificate(name).read_bytes()
        write_private_file(folder / "identity.pem", pem)
        write_private_file(folder / "trust.pem", self.authority.bundle.read_bytes())
        return folder

    @asynccontextmanager
    async def serving_pods(self, identity: str = "config-store") -> AsyncGenerator[None]:
        listener = PodListener(f"127.0.0.1:{self.port}", self.identity("pincompute-system", identity))
        app = build_app(self.store, listener.authenticate)
        async with serve_http(listener.listen, app, tls=listener.ssl_context(), grace=0.1):
            yield

    @asynccontextmanager
    async def program(
        self, module: str, project: str = "ads", **variables: str
    ) -> AsyncGenerator[asyncio.subprocess.Process]:
        """One of the programs, as the part starts it: with the standard library only."""
        (self.folder / "pod").mkdir(exist_ok=True)
        package = str(Path(sys.modules["pincompute"].__path__[0]).parent)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-m", f"pincompute.agents.config.{module}",
            str(self.folder / "pod"), f"https://127.0.0.1:{self.port}",
            env={"PYTHONPATH": package, "IDENTITY_FOLDER": str(self.identity(project, "web")), **variables},
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    def pinned(self) -> str:
        found = self.store.read_version("ads", "flags")
        return f"ads/flags@{found.version}={found.digest}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.create(tmp_path)


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str]:
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


async def wait_for_text(path: Path, text: bytes) -> None:
    async def has_text() -> bool:
        return await asyncio.to_thread(_read, path) == text

    await until(has_text, WAIT_TIMEOUT_S)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


async def test_init_container_fetches_its_bundles(world: World) -> None:
    publish_files(world.store, ONE)
    async with world.serving_pods(), world.program("fetch", CONFIG_BUNDLES=world.pinned()) as process:
        code, errors = await finish(process)
    assert code == 0, errors
    assert (world.folder / "pod" / "flags" / "deep" / "b").read_bytes() == b"same"


async def test_sidecar_follows_and_keeps_the_last_good_version(world: World) -> None:
    publish_files(world.store, ONE)
    file = world.folder / "pod" / "flags" / "flags.json"
    async with world.program("follow", LIVE_CONFIG_BUNDLES="ads/flags") as process:
        async with world.serving_pods():
            await wait_for_text(file, b'{"a": 1}')
            publish_files(world.store, TWO)
            await wait_for_text(file, b'{"a": 2}')
        # Without the store.
        world.store.point("ads", "flags", 1)
        assert process.returncode is None
        assert file.read_bytes() == b'{"a": 2}'
        async with world.serving_pods():
            await wait_for_text(file, b'{"a": 1}')
        assert process.returncode is None


async def test_pod_of_another_project_has_nothing(world: World) -> None:
    publish_files(world.store, ONE)
    async with world.serving_pods(), world.program("fetch", "search", CONFIG_BUNDLES=world.pinned()) as process:
        code, errors = await finish(process)
    assert code == 1
    assert errors.splitlines()[-1].startswith("configuration bundles rejected by https://")
    assert not (world.folder / "pod" / "flags").exists()


async def test_another_pod_cannot_pretend_to_be_the_store(world: World) -> None:
    """It has a certificate of the same authority."""
    publish_files(world.store, ONE)
    async with world.serving_pods("web"), world.program("fetch", CONFIG_BUNDLES=world.pinned()) as process:
        code, errors = await finish(process)
    assert code == 1
    assert "the server is not the config-store" in errors.splitlines()[-1]


async def test_source_that_accepts_and_says_nothing_is_waited_for(world: World) -> None:
    publish_files(world.store, ONE)

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0)
        connections.append(writer)

    async def is_connected() -> bool:
        return bool(connections)

    connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(hang, "127.0.0.1", world.port)
    async with world.program("follow", LIVE_CONFIG_BUNDLES="ads/flags") as process:
        await until(is_connected, WAIT_TIMEOUT_S)
        server.close()
        for each in connections:
            each.close()
        async with world.serving_pods():
            await wait_for_text(world.folder / "pod" / "flags" / "flags.json", b'{"a": 1}')
        assert process.returncode is None
