"""Attacks on serversets: clients of ZooKeeper that write garbage or take folders, and tenants that read or wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from agents.traffic.test_endpoints import RunningApi, pod_session, running_api, update
from agents.traffic.test_registrar import has_exactly, running_registrar
from pincompute.agents.traffic.ensemble import Denied
from pincompute.agents.traffic.registrar import folder
from pincompute.agents.traffic.server import MAX_REQUESTS
from pincompute.agents.traffic.sidecar import Files
from pincompute.api.serverset import ServersetKey
from registrar_process import KEY, numbered_members
from zookeeper_server import ZooKeeperServer, connected, unique_root, until_holds


@pytest.fixture
async def api(shared_zookeeper: ZooKeeperServer, tmp_path: Path) -> AsyncIterator[RunningApi]:
    async with running_api(shared_zookeeper, tmp_path) as running:
        yield running


@pytest.fixture
def stranger(shared_zookeeper: ZooKeeperServer) -> Iterator[Any]:
    """A client without the password."""
    client = KazooClient(shared_zookeeper.address)
    client.start(60)
    yield client
    client.stop()
    client.close()


async def test_only_registrars_write(shared_zookeeper: ZooKeeperServer, stranger: Any) -> None:
    root = unique_root()
    path = folder(root, KEY)
    async with connected(shared_zookeeper) as ensemble, running_registrar(ensemble, root, 1):
        await until_holds(lambda: has_exactly(ensemble, root, 1))
        (name,) = await asyncio.to_thread(stranger.get_children, path)
        assert (await asyncio.to_thread(stranger.get, f"{path}/{name}"))[0] == numbered_members(1)["uid-0"].data
        attacks = (
            lambda: stranger.create(f"{path}/member_666", b"{}"),
            lambda: stranger.create(f"{root}/mine", b""),
            lambda: stranger.set(f"{path}/{name}", b"{}"),
            lambda: stranger.delete(f"{path}/{name}"),
            lambda: stranger.set_acls(path, stranger.get_acls(path)[0]),
        )
        for attack in attacks:
            with pytest.raises(NoAuthError):
                await asyncio.to_thread(attack)


async def test_folder_of_another_client_is_not_used(shared_zookeeper: ZooKeeperServer, stranger: Any) -> None:
    """It could remove members, or add its own. The problem is reported, and goes away with the folder."""
    root = unique_root()
    await asyncio.to_thread(stranger.create, root, b"")
    async with connected(shared_zookeeper) as ensemble, running_registrar(ensemble, root, 1) as registrar:
        with pytest.raises(Denied, match="access list of another client"):
            await ensemble.claim_folder(root)
        await until_holds(lambda: registrar.problem)
        assert registrar.problem == f"{root} has an access list of another client"
        assert await asyncio.to_thread(stranger.get_children, root) == []
        await asyncio.to_thread(stranger.delete, root)
        await until_holds(lambda: has_exactly(ensemble, root, 1))


async def test_garbage_of_a_client_with_the_password_is_ignored(api: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    api.open("me", "web")
    await api.register(KEY, 1)
    path, call, client = folder(api.root, KEY), api.ensemble._call, api.ensemble._client  # noqa: SLF001
    garbage = [
        b"",
        b"\xff\x00",
        b"[" * 3000,
        b'{"serviceEndpoint":{"host":"6.6.6.6\\n7.7.7.7:1","port":1}}',
        b"x" * 500_000,
    ]
    for number, data in enumerate(garbage):
        await call(client.create_async, f"{path}/member_{number}", data, ephemeral=True)
    valid = numbered_members(3)["uid-2"].data
    # Not a member's name, and an entry that would outlive its process.
    await call(client.create_async, f"{path}/other", valid, ephemeral=True)
    await call(client.create_async, f"{path}/member_9", valid)
    reader = api.client("me", "caller", "me/web")
    await update(reader, Files(tmp_path / "run"), tmp_path / "run/me/web", "10.0.0.0:80\n")
    await api.register(KEY, 2)
    await update(reader, Files(tmp_path / "run"), tmp_path / "run/me/web", "10.0.0.0:80\n10.0.0.1:80\n")
    reader.close()


async def test_names_that_a_tenant_makes_up_are_not_watched(api: RunningApi) -> None:
    async with pod_session(api, "me", "caller") as session:
        for number in range(20):
            query = "&".join(f"set=me/made-up-{number}-{each}" for each in range(32))
            async with session.get(f"{api.address}/v1/endpoints?{query}") as answer:
                assert answer.status == 200
                await answer.read()
    assert not api.serversets._sets  # noqa: SLF001


async def test_waiting_requests_of_one_workload_are_bounded(api: RunningApi) -> None:
    """They cost memory. Another workload is answered meanwhile."""
    api.open("me", "web")
    async with pod_session(api, "me", "greedy") as session, pod_session(api, "me", "other") as other:
        url = f"{api.address}/v1/endpoints?set=me/web"
        async with session.get(url) as answer:
            version = (await answer.json())["version"]

        async def ask() -> int:
            async with session.get(f"{url}&since={version}&wait=1") as answer:
                await answer.read()
                return answer.status

        assert set(await asyncio.gather(*(ask() for _ in range(10)))) == {200}
        api.requests[ServersetKey("me", "greedy")] = MAX_REQUESTS
        assert await ask() == 429
        async with other.get(url) as answer:
            assert answer.status == 200
            await answer.read()


@pytest.mark.parametrize("wait", ["-1", "1e9", "٣", "9" * 50, "0"])
async def test_time_to_wait_is_bounded(api: RunningApi, wait: str) -> None:
    api.open("me", "web")
    url = f"{api.address}/v1/endpoints?set=me/web&since=other&wait={wait}"
    async with pod_session(api, "me", "caller") as session, session.get(url) as answer:
        assert answer.status == 200
        await answer.read()
