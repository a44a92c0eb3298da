"""One desk is the leader, and another one as soon as the first is dead or silent."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from pincompute.desk.leadership import Leadership, postgres_leadership, run_leader_tasks
from pincompute.desk.store.database import open_database
from postgres_server import new_database

HOLD_LEADERSHIP = """
import asyncio, sys
from pincompute.desk.store.database import open_database

async def hold():
    database = await open_database(sys.argv[1])
    async with database.acquire_leadership("main"):
        print("leader", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


async def test_leadership_is_released_when_its_holder_is_killed(where: str) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD_LEADERSHIP, where, stdout=asyncio.subprocess.PIPE
    )
    assert other.stdout
    assert await other.stdout.readline() == b"leader\n"
    database = await open_database(where)
    async with AsyncExitStack() as stack:
        waits = asyncio.create_task(stack.enter_async_context(database.acquire_leadership("main")))
        # The leadership of another platform is a lock of its own.
        if database.shared:
            async with database.acquire_leadership("east"):
                pass
        assert not waits.done()
        other.kill()
        async with asyncio.timeout(60):
            assert (await waits).is_held()
    await other.wait()
    await database.close()


@pytest.fixture
def address(server: Path) -> str:
    return new_database(server)


async def test_silent_leader_loses_the_leadership(address: str) -> None:
    async with AsyncExitStack() as stack:
        # Its heartbeats are too rare for the timeout.
        silent = await stack.enter_async_context(
            postgres_leadership(address, "main", timeout_s=1.0, heartbeat_interval_s=60.0)
        )
        async with asyncio.timeout(60), postgres_leadership(address, "main") as other:
            assert other.is_held()
            assert not silent.is_held()
            await silent.lost.wait()


async def test_heartbeats_keep_the_leadership(address: str) -> None:
    async with postgres_leadership(address, "main", timeout_s=6.0, heartbeat_interval_s=0.2) as held:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7.0), postgres_leadership(address, "main"):
                pass
        assert held.is_held()


async def test_lost_leadership_cancels_its_tasks() -> None:
    shifts: list[Leadership] = []
    ended: list[Leadership] = []
    begun = asyncio.Queue[Leadership]()

    class Next(AbstractAsyncContextManager[Leadership]):
        async def __aenter__(self) -> Leadership:
            shifts.append(Leadership())
            return shifts[-1]

        async def __aexit__(self, *_: object) -> None:
            return None

    async def duty(shift: Leadership) -> None:
        begun.put_nowait(shift)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(shift)

    serving = asyncio.create_task(run_leader_tasks(Next, (duty,)))
    first = await begun.get()
    first.lost.set()
    second = await begun.get()
    assert (first is second, ended, first.is_held()) == (False, [first], False)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert ended == shifts
