"""The registrar before a real ZooKeeper: faults of the ensemble, of the session, and of the process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kazoo.client import KazooClient

import registrar_process
from child_process import child_process
from pincompute.agents.traffic.ensemble import Ensemble
from pincompute.agents.traffic.registrar import Registrar, folder
from pincompute.base.clock import SystemClock
from registrar_process import KEY, numbered_members
from zookeeper_server import PASSWORD, ZooKeeperServer, connected, unique_root, until_holds


@asynccontextmanager
async def running_registrar(ensemble: Ensemble, root: str, members: int) -> AsyncIterator[Registrar]:
    registrar = Registrar(ensemble, root, SystemClock(), on_pass=lambda: None)
    registrar.wanted = numbered_members(members)
    ensemble.on_change = registrar.reconcile
    task = asyncio.create_task(registrar.run())
    try:
        yield registrar
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def owners(observer: Ensemble, root: str) -> dict[bytes, list[int]]:
    """Sessions of the entries, by their content: two of one content would be duplicates."""
    path = folder(root, KEY)
    found: dict[bytes, list[int]] = {}
    for name in await observer.children(path, lambda: None):
        entry = await observer.read(f"{path}/{name}")
        if entry:
            found.setdefault(entry.data, []).append(entry.session)
    return found


async def has_exactly(observer: Ensemble, root: str, members: int, session: int | None = None) -> bool:
    found = await owners(observer, root)
    assert all(len(each) == 1 for each in found.values()), "a pod is registered twice"
    of_session = session is None or all(each == [session] for each in found.values())
    return of_session and found.keys() == {each.data for each in numbered_members(members).values()}


async def test_members_follow_what_is_wanted(shared_zookeeper: ZooKeeperServer) -> None:
    root = unique_root()
    async with connected(shared_zookeeper) as ensemble, running_registrar(ensemble, root, 20) as registrar:
        await until_holds(lambda: has_exactly(ensemble, root, 20, ensemble.session))
        assert all(map(registrar.is_registered, registrar.wanted.values()))
        removed = numbered_members(20)["uid-19"]
        registrar.wanted = numbered_members(19)
        registrar.reconcile()
        await until_holds(lambda: has_exactly(ensemble, root, 19))
        assert not registrar.is_registered(removed)


async def test_registers_once_an_ensemble_that_was_unreachable_answers(zookeeper: ZooKeeperServer) -> None:
    ensemble = Ensemble(zookeeper.address, PASSWORD, SystemClock(), session_timeout_s=30.0)
    ensemble.start()
    root = unique_root()
    async with running_registrar(ensemble, root, 3) as registrar:
        await until_holds(lambda: registrar.problem)
        assert registrar.problem == "ZooKeeper is unreachable"
        assert not any(map(registrar.is_registered, registrar.wanted.values()))
        zookeeper.start()
        await until_holds(lambda: ensemble.session)
        await until_holds(lambda: has_exactly(ensemble, root, 3, ensemble.session))
        assert not registrar.problem
    await ensemble.stop()


async def test_state_is_restored_after_an_ensemble_lost_everything(zookeeper: ZooKeeperServer) -> None:
    zookeeper.start()
    root = unique_root()
    short = connected(zookeeper, session_timeout_s=4.0)
    async with short as ensemble, running_registrar(ensemble, root, 5) as registrar:
        await until_holds(lambda: has_exactly(ensemble, root, 5))
        zookeeper.stop()
        await until_holds(lambda: not ensemble.session)
        # Pods come and go while it is away.
        registrar.wanted = numbered_members(8)
        registrar.reconcile()
        for each in (zookeeper.folder / "data").rglob("*"):
            if each.is_file():
                each.unlink()
        zookeeper.start()
        await until_holds(lambda: ensemble.session)
        await until_holds(lambda: has_exactly(ensemble, root, 8, ensemble.session))


async def test_members_that_left_during_an_outage_are_removed_after_it(zookeeper: ZooKeeperServer) -> None:
    zookeeper.start()
    root = unique_root()
    async with connected(zookeeper) as ensemble, running_registrar(ensemble, root, 5) as registrar:
        await until_holds(lambda: has_exactly(ensemble, root, 5))
        zookeeper.stop()
        await until_holds(lambda: not ensemble.session)
        registrar.wanted = numbered_members(2)
        registrar.reconcile()
        zookeeper.start()
        await until_holds(lambda: ensemble.session)
        await until_holds(lambda: has_exactly(ensemble, root, 2))


async def test_members_are_made_again_in_a_new_session_after_it_expired(shared_zookeeper: ZooKeeperServer) -> None:
    root = unique_root()
    async with (
        connected(shared_zookeeper) as observer,
        connected(shared_zookeeper) as ensemble,
        running_registrar(ensemble, root, 5),
    ):
        await until_holds(lambda: has_exactly(observer, root, 5))
        expired = ensemble.session
        await asyncio.to_thread(expire, shared_zookeeper, ensemble)
        await until_holds(lambda: ensemble.session not in {0, expired})
        await until_holds(lambda: has_exactly(observer, root, 5, ensemble.session))


def expire(zookeeper: ZooKeeperServer, ensemble: Ensemble) -> None:
    """Closes the session from another connection, which the server accepts with its password."""
    client_id = ensemble._client.client_id  # noqa: SLF001  (a client has one session)
    other = KazooClient(zookeeper.address, client_id=client_id)
    other.start(60)
    other.stop()
    other.close()


async def test_entry_that_another_client_removed_or_changed_is_restored(shared_zookeeper: ZooKeeperServer) -> None:
    root = unique_root()
    member = next(iter(numbered_members(1).values()))
    path = f"{folder(root, KEY)}/{member.name}"
    async with connected(shared_zookeeper) as ensemble, connected(shared_zookeeper) as other:
        await ensemble.claim_folder(root)
        await other.put_ephemeral(path, b"garbage")
        await ensemble.put_ephemeral(path, member.data)
        assert await owners(other, root) == {member.data: [ensemble.session]}
        await other.delete(path)
        await ensemble.put_ephemeral(path, member.data)
        await ensemble.put_ephemeral(path, member.data)
        assert await owners(other, root) == {member.data: [ensemble.session]}


async def test_registrar_killed_at_any_moment_leaves_no_duplicates(shared_zookeeper: ZooKeeperServer) -> None:
    """Each process is killed after a different number of writes; the next one takes over what the others left."""
    root, count = unique_root(), 60
    async with connected(shared_zookeeper) as observer:
        for writes in (0, 1, 7, 31, 59):
            await kill_after(shared_zookeeper, root, count, writes)
            found = await owners(observer, root)
            assert all(len(each) == 1 for each in found.values())
        async with running_registrar(observer, root, count):
            # Entries of sessions that are still open are replaced, and not waited for.
            await until_holds(lambda: has_exactly(observer, root, count, observer.session))


async def kill_after(zookeeper: ZooKeeperServer, root: str, count: int, writes: int) -> None:
    program = Path(registrar_process.__file__)
    command = ("sh", "-c", 'exec "$0" "$@" 2>&1', sys.executable, str(program))
    with child_process(*command, zookeeper.address, PASSWORD, root, str(count)) as process:
        assert process.stdout
        seen = 0
        while seen < writes:
            line = await asyncio.to_thread(process.stdout.readline)
            assert line, "the registrar has ended"
            seen += "member added" in line
        process.kill()
        await asyncio.to_thread(process.stdout.read)


async def test_members_of_a_process_that_died_disappear_with_its_session(shared_zookeeper: ZooKeeperServer) -> None:
    root = unique_root()
    async with connected(shared_zookeeper) as observer:
        async with connected(shared_zookeeper) as ensemble, running_registrar(ensemble, root, 5):
            await until_holds(lambda: has_exactly(observer, root, 5))
        await until_holds(lambda: has_exactly(observer, root, 0))
